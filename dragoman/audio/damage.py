"""Where a compressed recording is damaged in its middle: a bad sector, a download with a gap.

Decoders go on behind the damage and tell nobody. Pages of an ogg have checksums and numbers; the
frames of an mp3 follow each other without anything between them but tags.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from dragoman.audio.cut import TAIL, Frame, after_tag, chain, kind_of, ogg_is_cut
from dragoman.audio.decoded import Span
from dragoman.audio.ogg import FIRST, Page, next_page
from dragoman.text.moments import shown_moment

TAGS = (b"ID3", b"TAG", b"APET", b"LYRI")
"""How that begins which may stand between the frames of joined mp3s."""
OPUS_RATE = 48000
"""What an ogg of Opus counts by, whatever the rate of its sound."""
LONG_PAGE_S = 10.0
"""A first page with more than this is of a recorder that came later, as those of web radio do."""
FAR = 60_000
"""Bytes of an ogg beyond which ffmpeg looks for no page: what follows would be lost."""
MOST_TOLD = 5
"""Damaged places that a sentence names, at most."""

# What becomes of what was there.
SILENT = "silence is heard there"
LEFT_OUT = "what was there is left out"
EARLIER = f"{LEFT_OUT}, and what follows comes so much earlier"
EARLIER_BUT_FOR_FFMPEG = f"{EARLIER}; with ffmpeg it keeps its place"
LOST = "the rest is lost"
LOST_BUT_FOR_FFMPEG = "the rest is lost; with ffmpeg installed more of it may be heard"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hole:
    """Bytes that are no sound any more, and how many seconds of sound are before them."""

    start: int
    end: int
    at_s: float

    @property
    def is_far_across(self) -> bool:
        return self.end - self.start > FAR

    def is_in(self, span: Span) -> bool:
        return span.start <= self.at_s < (math.inf if span.end is None else span.end)


def ogg_holes(path: Path, rate: int) -> tuple[Hole, ...]:
    """Those of an ogg whose sound has so many samples a second; none of anything else."""
    return _holes(path, "ogg", rate, *_state(path))


def mp3_holes(path: Path) -> tuple[Hole, ...]:
    """Those of an mp3; none of anything else."""
    return _holes(path, "mp3", 0, *_state(path))


def frames_follow(file: BinaryIO, at: int) -> bool:
    """Whether there is more sound in an mp3 from a place on."""
    first = _frame(file, after_tag(file))
    return first is not None and _next_frames(file, at, first) is not None


def tell_damage(name: str, span: Span, holes: Sequence[Hole], outcome: str) -> None:
    """Say where the wanted part of a recording is damaged, if it is."""
    places = [hole.at_s for hole in holes if hole.is_in(span)]
    if places:
        log.warning("%s is damaged at %s: %s.", name, listed_moments(places), outcome)


def listed_moments(places: Sequence[float]) -> str:
    """Some places of a recording: 0:07, 1:30 and 3 more places."""
    moments = list(dict.fromkeys(map(shown_moment, places)))
    if (more := len(moments) - MOST_TOLD) > 0:
        moments[MOST_TOLD:] = [f"{more} more {'place' if more == 1 else 'places'}"]
    *others, last = moments
    return f"{', '.join(others)} and {last}" if others else last


def _state(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=64)  # a recording may be read in a thousand parts
def _holes(path: Path, kind: str, rate: int, *state: int) -> tuple[Hole, ...]:
    """`state` tells whether it has changed."""
    with path.open("rb") as file:
        if kind_of(file) != kind:
            return ()
        return tuple(_in_ogg(file, rate) if kind == "ogg" else _in_mp3(file))


def _in_ogg(file: BinaryIO, rate: int) -> Iterator[Hole]:
    before: Page | None = None
    count = _Count(rate)
    while page := next_page(file, before.end if before else 0):
        end = before.end if before else 0
        if page.start > end or _is_missing_one(before, page):
            yield Hole(end, page.start, count.seconds)
        count.take(page)
        before = page
    end = before.end if before else 0
    file.seek(end)
    if file.read(4) == b"OggS" and not ogg_is_cut(file):  # the last page is there, and not whole
        yield Hole(end, file.seek(0, os.SEEK_END), count.seconds)


def _is_missing_one(before: Page | None, page: Page) -> bool:
    return before is not None and before.serial == page.serial and before.number + 1 < page.number


class _Count:
    """The seconds of sound up to the end of a page; recordings may follow each other."""

    def __init__(self, rate: int) -> None:
        self.seconds = 0.0
        self._rate, self._per_second = rate, rate
        self._began_s = 0.0
        self._origin: int | None = None

    def take(self, page: Page) -> None:
        if page.flags & FIRST:
            self._began_s, self._origin = self.seconds, None
            opus = page.body.startswith(b"OpusHead")
            self._per_second = OPUS_RATE if opus else self._rate
        if page.granule <= 0:
            return
        if self._origin is None:
            late = page.granule > LONG_PAGE_S * self._per_second
            self._origin = page.granule if late else 0
        self.seconds = self._began_s + (page.granule - self._origin) / self._per_second


def _in_mp3(file: BinaryIO) -> Iterator[Hole]:
    at, seconds = after_tag(file), 0.0
    first = _frame(file, at)
    if first is None:
        return
    while True:
        if frame := _frame(file, at):
            at, seconds = at + frame.size, seconds + frame.seconds
            continue
        if (end := _next_frames(file, at, first)) is None:
            return
        file.seek(at)
        if not file.read(4).startswith(TAGS):
            yield Hole(at, end, seconds)
        at = end


def _frame(file: BinaryIO, at: int) -> Frame | None:
    file.seek(at)
    return Frame.read(file.read(4))


def _next_frames(file: BinaryIO, at: int, first: Frame) -> int | None:
    """Where frames like the first follow each other again."""
    while True:
        file.seek(at)
        data = file.read(TAIL)
        if found := chain(data, first):
            return at + found[0]
        if len(data) < TAIL:
            return None
        at += TAIL // 2  # a chain may begin in the second half
