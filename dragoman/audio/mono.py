"""One channel of many: how all sound becomes what is heard, wherever it comes from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import Samples
from dragoman.audio.pcm import Frames
from dragoman.errors import DragomanError

CANCELLED = 0.5
"""Of the power that the loudest channel would leave in the mean if the others were silent. Voices
of their own leave more; where there is less, one channel takes away what another brings, as where
one of two wires is crossed."""
MUCH_SOFTER = 0.25
"""Of the power of the loudest channel: another is heard in place of one that falls below it."""
REMEMBERED = 2.0
"""Seconds in which what was heard comes to count a third."""
BLOCK = 4096
"""Frames for which it is decided at once."""


class Mono:
    """Makes one channel of those that sound has, piece by piece.

    It is the wanted one, counted from 1, or else their mean. Where they cancel each other, it is
    the loudest, and the same each time: the other may have its waves upside down.
    What was heard in the last seconds counts, too: soft speech is not lost in noise that differs
    from channel to channel.
    """

    def __init__(self, rate: int, channel: int | None = None, name: str = "") -> None:
        """`name`: of the recording that may not have the wanted channel."""
        self._rate, self._channel, self._name = rate, channel, name
        self._powers: NDArray[np.float64] = np.zeros(0)  # of the mean, then of each channel
        self._kept: int | None = None  # heard whenever they cancel each other

    def of(self, block: Frames) -> Samples:
        channels = block.shape[1]
        if self._channel is not None:
            check_channel(self._channel, channels, self._name)
            return block[:, self._channel - 1]
        if channels == 1:
            return block[:, 0]
        return np.concatenate(
            [self._made_one(block[at : at + BLOCK]) for at in range(0, max(1, len(block)), BLOCK)]
        )

    def _made_one(self, block: Frames) -> Samples:
        mean: Samples = block.mean(axis=1, dtype=np.float32)
        powers = np.square(np.column_stack([mean, block])).sum(axis=0, dtype=np.float64)
        if len(self._powers) == len(powers):
            powers += self._powers * np.exp(-len(block) / (REMEMBERED * self._rate))
        else:  # the first, or there are other channels from here on
            self._kept = None
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
