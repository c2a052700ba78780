"""The log: a JSON object a line. What was said is never part of it."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from traceback import walk_tb

_FRAMES = 4  # that tell where an exception comes from
_log = logging.getLogger("dragoman.serve")


def note(event: str, **values: str | float | int | None) -> None:
    """Something happened: a name for it, and plain values."""
    _log.info(event, extra={"values": values})


def place(error: BaseException) -> str:
    """Where an exception comes from, innermost first; its text, which may hold anything, is not
    part of it, nor is a path."""
    frames = list(walk_tb(error.__traceback__))[-_FRAMES:]
    return " < ".join(
        f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}:{line}"
        for frame, line in reversed(frames)
    )


class JsonLines(logging.Formatter):
    """A record as one line; of an exception its kind and its place, for its text may hold
    anything."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage().partition("\n")[0],  # others add what may hold anything
            **getattr(record, "values", {}),
        }
        if record.exc_info and record.exc_info[1]:
            line["exception"] = type(record.exc_info[1]).__name__
            line["where"] = place(record.exc_info[1])
        return json.dumps(line)


def log_to_stderr() -> None:
    """All of the service, and the warnings of all that is below it, to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.getLogger().handlers = [handler]
    for name, level in (("dragoman", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
