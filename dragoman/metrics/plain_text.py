"""Plain text: what a system has written, a line for each sentence or talk, and not when."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman.errors import DragomanError
from dragoman.metrics.instance import Instance, Unit
from dragoman.metrics.lines import Log, read_lines
from dragoman.metrics.quality import QUALITY
from dragoman.metrics.segments import read_references

KIND = "plain text"


def is_text(path: Path) -> bool:
    """Whether a file is no log: its first line that holds anything begins no JSON object, and none
    of the others is one, as where a log has lost its beginning."""
    lines = (line for _, line in read_lines(path))
    first = next(lines, b"{")
    return not first.lstrip().startswith(b"{") and not any(map(_is_object, lines))


def _is_object(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def read(path: Path, unit: Unit) -> Log:
    """Read the lines; an empty one is a sentence of which nothing was said."""
    lines = read_references(path, "text")
    return Log(path, KIND, [_instance(index, line, unit) for index, line in enumerate(lines)])


def _instance(index: int, text: str, unit: Unit) -> Instance:
    """A line as if all of it had been there at once: no metric looks at these times."""
    units = len(text.split() if unit == "word" else text)
    return Instance(
        index=index, prediction=text, delays=array("d", bytes(8 * units)), source_length=0
    )


def metrics_of_text(path: Path, wanted: Sequence[str]) -> list[str]:
    """Of the metrics that are wanted those of quality; all of these, if none is named."""
    if timed := [name for name in wanted if name not in QUALITY]:
        raise DragomanError(
            f"{path} is plain text, which does not tell when something was said: it has no "
            f"{timed[0]}. There are {', '.join(QUALITY)}; a log has latencies, too."
        )
    return list(wanted) or list(QUALITY)
