"""What every audio source gives: a piece of sound, and whether it is the last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RATE = 16000
"""Samples per second of all sound inside Dragoman: 16 kHz, mono, float32 in [-1, 1]."""

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """The next piece of a recording or of a live speaker.

    A source gives any number of chunks, exactly one of them, the final one, with `last`.
    The final chunk may be empty: a microphone learns of its end only after the fact.
    """

    samples: Samples
    last: bool
    arrival: float | None = None
    """Seconds since the start of listening, where a real clock stamped the chunk."""

    @property
    def seconds(self) -> float:
        return len(self.samples) / RATE
