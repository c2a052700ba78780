"""What every audio source yields: a piece of sound, and whether it is the last."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError

RATE = 16000
"""Samples per second of all sound inside Dragoman: 16 kHz, mono, float32 in [-1, 1]."""

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """The next piece of a recording or of a live speaker.

    A source yields any number of chunks, exactly one of them, the final one, with `last`.
    The final chunk may be empty: a microphone learns of its end only after the fact.
    """

    samples: Samples
    last: bool
    arrival: float | None = None
    """Seconds since the start of listening, where a real clock stamped the chunk."""
    closes: bool = False
    """What was heard so far shall be said now, as after a pause."""

    @property
    def seconds(self) -> float:
        return len(self.samples) / RATE


class Chunker:
    """Cuts blocks of any size into chunks of one step."""

    def __init__(self, step_ms: float) -> None:
        if not (math.isfinite(step_ms) and step_ms > 0):
            raise DragomanError(f"Audio cannot be cut into steps of {step_ms} ms.")
        self._step = max(1, round(step_ms * RATE / 1000))
        self._held: list[Samples] = []
        self._count = 0

    def feed(
        self, block: Samples, arrival: float | None = None, hold: bool = False
    ) -> Iterator[Chunk]:
        """The chunks that are complete now; with `hold`, only when something follows them.

        To hold costs a wait for the next block, so it is for files. It makes sure that the last
        chunk, which `finish` returns, is not empty.
        """
        self._held.append(block)
        self._count += len(block)
        if self._count < self._step + hold:
            return
        samples = np.concatenate(self._held)
        whole = (self._count - hold) // self._step * self._step
        self._held, self._count = [samples[whole:]], self._count - whole
        for at in range(0, whole, self._step):
            yield Chunk(samples[at : at + self._step], False, arrival)

    def finish(self, arrival: float | None = None) -> Chunk:
        """The last chunk: what is left, less than a step or just one."""
        samples = np.concatenate([*self._held, np.zeros(0, np.float32)])
        self._held, self._count = [], 0
        return Chunk(samples, True, arrival)
