"""Word ends that are known from an alignment, in a text file: the oracle of paper 000.

A line names a recording and gives its word ends in ms, after a tab and with spaces between; a line
of numbers alone is about whichever recording is heard. `#` begins a remark.

    001.ogg<TAB>310 640 1105 1420
"""

from __future__ import annotations

from pathlib import Path

from dragoman.detectors.base import Boundaries
from dragoman.errors import DragomanError


class NoEndsError(DragomanError):
    """A file has no word ends of one recording that could be used; of others it may."""


def read_ends(path: Path, recording: str = "", start_ms: float = 0.0) -> Boundaries:
    """The word ends of a recording, or of what is heard of it from `start_ms` on."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DragomanError(f"Cannot read the word ends in {path}: {error}.") from error
    for number, line in enumerate(lines, start=1):
        name, tab, times = line.partition("\t")
        if not line.strip() or line.startswith("#"):
            continue
        if not tab:
            name, times = "", line
        if name in ("", recording):
            ends = _times(times, f"Line {number} of {path}")
            return Boundaries(tuple(end - start_ms for end in ends if end > start_ms))
    raise NoEndsError(
        f"{path} has no word ends of '{recording}'; a line reads NAME, a tab, times in ms."
    )


def _times(text: str, where: str) -> list[float]:
    try:
        ends = [float(part) for part in text.split()]
    except ValueError as error:
        raise NoEndsError(f"{where} should hold word ends in ms: {error}.") from error
    if ends != sorted(ends):
        raise NoEndsError(f"{where} has word ends that are not in order.")
    return ends
