"""The log: a JSON object a line. What was said is never part of it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from traceback import walk_tb

MINUTE = 60.0
_TROUBLES = 100  # that are remembered
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


def event_of(record: logging.LogRecord) -> str:
    """Its first line: others add what may hold anything."""
    return record.getMessage().partition("\n")[0]


class JsonLines(logging.Formatter):
    """A record as one line; of an exception its kind and its place, for its text may hold
    anything."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": event_of(record),
            **getattr(record, "values", {}),
        }
        if record.exc_info and record.exc_info[1]:
            line["exception"] = type(record.exc_info[1]).__name__
            line["where"] = place(record.exc_info[1])
            if isinstance(
                record.exc_info[1], OSError
            ):  # what the system says holds nothing of ours
                line["why"] = record.exc_info[1].strerror
        return json.dumps(line)


class Seldom(logging.Filter):
    """Of a trouble that is told over and over, once a minute: who may open no more files would else
    be told so thousands of times a second, until the disk is full of it."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._timer = timer
        self._told: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        error = record.exc_info[1] if record.exc_info else None
        key, now = (event_of(record), place(error) if error else ""), self._timer()
        if now - self._told.get(key, -MINUTE) < MINUTE:
            return False
        self._told.pop(key, None)
        self._told[key] = now  # as the newest
        while len(self._told) > _TROUBLES:
            del self._told[next(iter(self._told))]
        return True


def log_to_stderr() -> None:
    """All of the service, and the warnings of all that is below it, to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    handler.addFilter(Seldom())
    logging.getLogger().handlers = [handler]
    for name, level in (("dragoman", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
