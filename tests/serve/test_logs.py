"""The log of the service, and of what is below it."""

import json
import logging

import pytest

from dragoman.serve.logs import log_to_stderr


@pytest.fixture
def loggers():
    """As they were, afterwards."""
    named = [logging.getLogger(name) for name in (None, "dragoman", "uvicorn.error")]
    before = [(one, one.handlers, one.propagate, one.level) for one in named]
    yield
    for one, handlers, propagate, level in before:
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)


@pytest.mark.parametrize("name", ["asyncio", "uvicorn.error", "dragoman.serve"])
def test_what_others_log_is_a_line_without_what_was_said(loggers, capsys, name):
    log_to_stderr()
    try:
        raise ValueError("what was said")
    except ValueError as error:
        text = "Task exception was never retrieved\nfuture: <Task exception=%r>"
        logging.getLogger(name).error(text, error, exc_info=True)
    line = json.loads(capsys.readouterr().err)
    assert line["event"] == "Task exception was never retrieved"
    assert (line["level"], line["exception"]) == ("error", "ValueError")
    assert line["where"].startswith("tests.serve.test_logs.")
    assert "what was said" not in json.dumps(line)
