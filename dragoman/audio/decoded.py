"""What every decoder returns, and what is done to all of it: counted, checked, made mono."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import Samples
from dragoman.audio.pcm import Frames
from dragoman.errors import DragomanError

log = logging.getLogger(__name__)

CANCELLED = 0.5
"""Of the power that the loudest channel would leave in the mean if the others were silent. Voices
of their own leave more; where there is less, one channel takes away what another brings, as where
one of two wires is crossed."""
MUCH_SOFTER = 0.25
"""Of the power of the loudest channel: another is heard in place of one that falls below it."""
REMEMBERED = 2.0
"""Seconds in which what was heard comes to count a third."""
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


class Mono:
    """Makes one channel of those of a recording, block by block.

    It is the wanted one, counted from 1, or else their mean. Where they cancel each other, it is
    the loudest, and the same each time: the other may have its waves upside down.
    What was heard in the last seconds counts, too: soft speech is not lost in noise that differs
    from channel to channel.
    """

    def __init__(self, name: str, rate: int, channel: int | None = None) -> None:
        self._name, self._rate, self._channel = name, rate, channel
        self._powers: NDArray[np.float64] = np.zeros(0)  # of the mean, then of each channel
        self._kept: int | None = None  # heard whenever they cancel each other

    def of(self, block: Frames) -> Samples:
        channels = block.shape[1]
        if self._channel is not None:
            check_channel(self._channel, channels, self._name)
            return block[:, self._channel - 1]
        return block[:, 0] if channels == 1 else self._made_one(block)

    def _made_one(self, block: Frames) -> Samples:
        mean: Samples = block.mean(axis=1, dtype=np.float32)
        powers = np.square(np.column_stack([mean, block])).sum(axis=0, dtype=np.float64)
        if len(self._powers) == len(powers):
            powers += self._powers * np.exp(-len(block) / (REMEMBERED * self._rate))
        self._powers, (of_mean, *channels) = powers, powers
        loudest = max(channels)
        if of_mean >= CANCELLED * loudest / len(channels) ** 2:
            return mean
        if self._kept is None or channels[self._kept] < MUCH_SOFTER * loudest:
            self._kept = channels.index(loudest)
        return block[:, self._kept]


def check_channel(channel: int, channels: int, name: str) -> None:
    """Refuse a channel that a recording does not have."""
    if not 1 <= channel <= channels:
        there = {1: "one channel", 2: "two channels, 1 (left) and 2 (right)"}
        known = there.get(channels, f"{channels} channels, 1 to {channels}")
        raise DragomanError(f"{name} has {known}; there is no channel {channel}.")


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
