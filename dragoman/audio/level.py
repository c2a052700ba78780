"""How loud speech is, whatever the pauses in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import Samples

LEVEL = 0.1
"""RMS of all speech where it is loud: -20 dB, as recordings have it."""
PEAK = 0.95
FRAME_SECONDS = 0.02


def loudness(samples: Samples, rate: int) -> float:
    """The RMS of a sound where it is loud."""
    return of_loud(frames(samples, rate))


def frames(samples: Samples, rate: int) -> NDArray[np.float64]:
    """RMS of each frame of 20 ms; the last frame may be shorter."""
    frame = round(FRAME_SECONDS * rate)
    padded = np.pad(samples, (0, -len(samples) % frame)).astype(np.float64)
    return np.asarray(np.sqrt(np.mean(padded.reshape(-1, frame) ** 2, axis=1)))


def of_loud(frames: NDArray[np.float64]) -> float:
    """The RMS over the frames that carry the speech."""
    if not len(frames):
        return 0.0
    carrying = frames[frames > 0.25 * np.percentile(frames, 95)]
    return float(np.sqrt(np.mean((carrying if len(carrying) else frames) ** 2)))
