"""Sound that was added up, kept below full scale: softer for a moment, not cut off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import Samples

FRAME = 0.02
"""Seconds in which it becomes softer before a peak, and louder after it."""


def frame_of(rate: int) -> int:
    """How many samples make a frame."""
    return max(1, round(FRAME * rate))


def limited(blocks: Iterable[Samples], ceiling: float, rate: int) -> Iterator[Samples]:
    """The blocks of shape (frames, channels), nowhere louder than a ceiling; what stays below it
    is left as it is. All of them but the last hold whole frames of the limiter."""
    size, before = frame_of(rate), 1.0
    held: tuple[Samples, NDArray[np.float64]] | None = None
    for block in blocks:
        if not len(block):
            continue
        gains = _gains(block, ceiling, size)
        if held is not None:
            yield _softened(*held, before, gains[0], size)
            before = held[1][-1]
        held = block, gains
    if held is not None:
        yield _softened(*held, before, 1.0, size)


def _gains(block: Samples, ceiling: float, size: int) -> NDArray[np.float64]:
    """What brings each frame down to the ceiling."""
    loudest = np.abs(block).max(axis=1)
    padded = np.pad(loudest, (0, -len(loudest) % size)).reshape(-1, size).max(axis=1)
    return np.asarray(ceiling / np.maximum(padded.astype(np.float64), ceiling))


def _softened(
    block: Samples, gains: NDArray[np.float64], before: float, after: float, size: int
) -> Samples:
    """The block under a line of gains. Where frames meet, the lower one holds: so the line never
    lies above what a frame needs."""
    around = np.concatenate([[before], gains, [after]])
    if around.min() >= 1.0:
        return block
    edges = np.minimum(around[:-1], around[1:])
    line = np.interp(np.arange(len(block)), size * np.arange(len(edges)), edges)
    softened: Samples = block * line.astype(np.float32)[:, None]
    return softened
