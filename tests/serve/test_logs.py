"""The log of the service, and of what is below it."""

import json
import logging

import pytest

from dragoman.serve.logs import Seldom, log_to_stderr, note


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


def fail(number):
    raise OSError(number, "Too many open files", "/home/somebody")


def log_failure(number):
    try:
        fail(number)
    except OSError:
        logging.getLogger("asyncio").exception("out of system resource\nsocket: %s", number)


def test_a_trouble_that_does_not_end_is_told_once_a_minute(loggers, capsys, monkeypatch):
    """As where no more files may be opened: asyncio tells it thousands of times a second."""
    now = 1000.0
    monkeypatch.setattr(Seldom.__init__, "__defaults__", (lambda: now,))
    log_to_stderr()
    for number in range(300):
        log_failure(number)
    logging.getLogger("asyncio").error("out of system resource")  # this one comes from elsewhere
    for _ in range(3):
        note("room", room="abc")  # which is no trouble
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in told] == ["out of system resource"] * 2 + ["room"] * 3
    assert told[0]["why"] == "Too many open files"
    now += 60
    log_failure(1)
    assert capsys.readouterr().err.count("\n") == 1


def test_troubles_that_differ_do_not_pile_up():
    seldom = Seldom()
    for number in range(1000):
        record = logging.makeLogRecord({"msg": f"trouble {number}", "levelno": logging.ERROR})
        assert seldom.filter(record)
        assert not seldom.filter(record)
    assert len(seldom._told) == 100
