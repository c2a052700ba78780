"""Clocks stamp the work on every chunk; which one is the only thing that differs between a live
talk and its simulation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since listening began."""

    def begin(self, audio_ms: float, arrival: float | None) -> tuple[float, float]:
        """Work on a chunk begins: (when the chunk had arrived, when the work began)."""

    def end(self) -> float:
        """The work on that chunk is over."""


class SimulatedClock:
    """Audio arrives as if a speaker spoke it; work takes the time it really takes here.

    A chunk's work starts when it has arrived and the work before it has ended: what a user of a
    live system would see, measured without waiting for the speaker.
    """

    def __init__(self, timer: Callable[[], float] = time.perf_counter) -> None:
        self._timer = timer
        self._free_ms = 0.0
        self._start_ms = 0.0
        self._began = 0.0

    def begin(self, audio_ms: float, arrival: float | None) -> tuple[float, float]:
        self._start_ms = max(audio_ms, self._free_ms)
        self._began = self._timer()
        return audio_ms, self._start_ms

    def end(self) -> float:
        self._free_ms = self._start_ms + (self._timer() - self._began) * 1000.0
        return self._free_ms


class RealClock:
    """The clock on the wall, for a live speaker; arrival is stamped by the audio source."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._zero = timer()

    def now(self) -> float:
        return (self._timer() - self._zero) * 1000.0

    def begin(self, audio_ms: float, arrival: float | None) -> tuple[float, float]:
        now = self.now()
        return (now if arrival is None else min(arrival * 1000.0, now)), now

    def end(self) -> float:
        return self.now()
