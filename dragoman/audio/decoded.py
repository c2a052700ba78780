"""What every decoder returns, and what is done to all of it: counted and checked."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dragoman.audio.pcm import Frames
from dragoman.errors import DragomanError

log = logging.getLogger(__name__)

LOUDEST = 1e6
"""Full scale is 1. Louder than this is no sound but a broken file, and would overflow later."""


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a recording that is wanted, in seconds."""

    start: float = 0.0
    end: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and self.start >= 0):
            raise DragomanError(f"Audio cannot start at {self.start} s; it starts at 0 or later.")
        if self.end is not None and not self.start < self.end < math.inf:
            raise DragomanError(
                f"Audio cannot end at {self.end:g} s when it starts at {self.start:g} s."
            )

    def first(self, rate: int) -> int:
        """The first wanted frame."""
        return round(self.start * rate)

    def frames(self, rate: int) -> int:
        """How many frames are wanted; parts that adjoin in seconds adjoin in frames."""
        return sys.maxsize if self.end is None else round(self.end * rate) - self.first(rate)


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """A recording that is being decoded, from the wanted start on."""

    name: str
    rate: int
    frames: Iterator[Frames]
    live: bool = False
    """Whether it comes through a pipe, at whatever pace the other side has."""


def wanted(decoded: Decoded, span: Span) -> Iterator[Frames]:
    """The frames of the wanted part: never empty, all of them numbers."""
    left = span.frames(decoded.rate)
    heard = 0
    for frames in decoded.frames:
        block = frames[: left - heard]
        _check_numbers(block, decoded, span.start + heard / decoded.rate)
        heard += len(block)
        if len(block):
            yield block
        if heard >= left:
            return
    _check_length(decoded, span, heard / decoded.rate)


def _check_numbers(block: Frames, decoded: Decoded, at: float) -> None:
    # A NaN compares false, so one look at the loudest sample finds all that is wrong.
    if not len(block) or float(np.abs(block).max()) <= LOUDEST:
        return
    frame, _ = np.argwhere(~(np.abs(block) <= LOUDEST))[0]
    value = block[frame][~(np.abs(block[frame]) <= LOUDEST)][0]
    raise DragomanError(
        f"{decoded.name} holds a sample that is no sound ({value:g}) at "
        f"{at + frame / decoded.rate:.3f} s; repair the recording or leave that part out."
    )


def _check_length(decoded: Decoded, span: Span, seconds: float) -> None:
    """Nothing heard at all is an error; half a second less than was asked for, a warning."""
    if seconds == 0 and span.start > 0:
        raise DragomanError(f"{decoded.name} has ended before {span.start:g} s: nothing to hear.")
    if seconds == 0:
        raise DragomanError(f"{decoded.name} holds no sound.")
    if span.end is not None and span.start + seconds < span.end - 0.5:
        log.warning(
            "%s ends at %.1f s, before the %.1f s that were asked for.",
            *(decoded.name, span.start + seconds, span.end),
        )


def skip(frames: Iterator[Frames], count: int) -> Iterator[Frames]:
    """What comes after the first `count` frames, of a recording that cannot be sought in."""
    for block in frames:
        if count < len(block):
            yield block[count:] if count else block
        count = max(0, count - len(block))
