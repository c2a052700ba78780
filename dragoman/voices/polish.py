"""The last touch to every voice's sound: equal levels, no clicks at the joins, no long silences."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import Samples
from dragoman.audio.level import FRAME_SECONDS, LEVEL, PEAK, frames, of_loud

FADE_SECONDS = 0.005
QUIET = 0.03
"""A frame this much softer than the loud ones (-30 dB) is silence."""
SILENCE_BEFORE, SILENCE_AFTER = 0.02, 0.12
"""Silence that is left around a phrase: enough that phrases in a row sound natural."""
PAUSE_SECONDS = 0.2
MOST_GAIN = 20.0


def polish(sound: NDArray[np.floating], rate: int) -> Samples:
    """Cut the silence around a phrase, bring it to the common level, fade its ends."""
    samples = np.nan_to_num(np.asarray(sound, np.float32).ravel())
    levels = frames(samples, rate)
    if not levels.any():
        return np.zeros(0, np.float32)
    loud = of_loud(levels)
    samples = _cut_silence(samples, levels > QUIET * loud, rate)
    gain = min(LEVEL / loud, MOST_GAIN, PEAK / float(np.abs(samples).max()))
    return _fade_ends(samples * np.float32(gain), rate)


def join(sounds: list[Samples], rate: int) -> Samples:
    """Sentences that were polished one by one, with a pause between them."""
    pause = np.zeros(round(PAUSE_SECONDS * rate), np.float32)
    parts = [part for sound in sounds for part in (pause, sound)]
    return np.concatenate([np.zeros(0, np.float32), *parts[1:]])


def _cut_silence(samples: Samples, heard: NDArray[np.bool_], rate: int) -> Samples:
    frame = round(FRAME_SECONDS * rate)
    loud = np.flatnonzero(heard)
    first = loud[0] * frame - round(SILENCE_BEFORE * rate)
    last = (loud[-1] + 1) * frame + round(SILENCE_AFTER * rate)
    return samples[max(0, first) : last]


def _fade_ends(samples: Samples, rate: int) -> Samples:
    count = min(round(FADE_SECONDS * rate), len(samples) // 2)
    ramp = np.linspace(0.0, 1.0, count, endpoint=False, dtype=np.float32)
    samples[:count] *= ramp
    samples[len(samples) - count :] *= ramp[::-1]
    return samples
