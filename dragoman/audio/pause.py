"""Where to begin in the middle of a recording: in a pause, so that no word is cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.audio.level import FRAME_SECONDS, frames
from dragoman.audio.pcm import RawFormat
from dragoman.audio.source import read_audio

BEFORE, AFTER = 0.5, 0.3
"""Seconds around a moment in which a pause is looked for."""
SHORT = 0.2
"""Seconds that a pause may be short."""


def pause_near(
    path: str | Path,
    moment: float,
    raw: RawFormat | None = None,
    track: str | None = None,
    channel: int | None = None,
) -> float:
    """The middle of the quietest of all short pieces around a moment, in seconds."""
    begin = max(0.0, moment - BEFORE)
    levels = frames(read_audio(path, begin, moment + AFTER, raw, track, channel), RATE)
    count = round(SHORT / FRAME_SECONDS)
    if len(levels) < count:
        return moment
    energies = np.convolve(levels**2, np.ones(count), "valid")
    return begin + (int(energies.argmin()) + count / 2) * FRAME_SECONDS
