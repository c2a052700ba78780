"""Reading JSON lines, with sentences that say which line is broken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from dragoman.errors import DragomanError
from dragoman.metrics.instance import Instance
from dragoman.metrics.timings import Medium

Row = TypeVar("Row")
NOT_A_NUMBER = re.compile(rb"[:,\[]\s*(-?(?:NaN|Infinity))\b")


@dataclass(frozen=True, slots=True)
class Log:
    """The sentences of a log, what their source was, and what had to be left out and why."""

    path: Path
    kind: str  # which tool's log it is
    instances: list[Instance]
    source: Medium = "speech"
    left_out: list[str] = field(default_factory=list)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Every line with its number, without blank ones."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if b"\0" in line:
                    raise DragomanError(f"{path} is not a log: it holds binary data.")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise DragomanError(f"Cannot read the log {path}: {error.strerror}.") from error


def decode_line(line: bytes, number: int, path: Path, decoder: msgspec.json.Decoder[Row]) -> Row:
    """One line as an object, or a sentence that says which line is broken and how."""
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        raise DragomanError(f"{path}, line {number}: {error}.") from error
    except UnicodeDecodeError as error:
        raise DragomanError(f"{path}, line {number}: this is not UTF-8 text ({error}).") from error
    except msgspec.DecodeError as error:
        raise DragomanError(
            f"{path}, line {number}: this is not valid JSON ({error}). {_likely(line)}"
        ) from error


def _likely(line: bytes) -> str:
    """Why a line is no JSON, as far as one can see."""
    if found := NOT_A_NUMBER.search(line):
        return f"It has {found[1].decode()} for a number."
    if line.strip() == b"{":
        return "A sentence must stand on one line."
    return "Was the log cut short?"
