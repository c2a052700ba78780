"""Clocks stamp the work on every chunk; which one is the only thing that differs between a live
talk and its simulation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since listening began."""

    @property
    def timer(self) -> Callable[[], float]:
        """Seconds, from any moment on: what work is measured with."""

    def begin(self, audio_ms: float, arrival: float | None) -> float:
        """Work on a chunk begins: when the chunk had arrived."""

    def end(self, work_ms: float) -> tuple[float, float]:
        """The work on that chunk took so long and is over: when it began and when it ended."""


class SimulatedClock:
    """Audio arrives as if a speaker spoke it; work takes the time it really takes here.

    A chunk's work starts when it has arrived and the work before it has ended: what a user of a
    live system would see, measured without waiting for the speaker.
    """

    def __init__(self, timer: Callable[[], float] = time.perf_counter) -> None:
        self.timer = timer
        self._free_ms = 0.0
        self._arrival_ms = 0.0

    def begin(self, audio_ms: float, arrival: float | None) -> float:
        self._arrival_ms = audio_ms
        return audio_ms

    def end(self, work_ms: float) -> tuple[float, float]:
        start_ms = max(self._arrival_ms, self._free_ms)
        self._free_ms = start_ms + work_ms
        return start_ms, self._free_ms


class RealClock:
    """The clock on the wall, for a live speaker; arrival is stamped by the audio source.

    Work may be measured with another `timer`, which leaves out what is no work.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.monotonic,
        timer: Callable[[], float] | None = None,
    ) -> None:
        self.timer = timer or wall
        self._wall, self._zero = wall, wall()

    def now(self) -> float:
        return (self._wall() - self._zero) * 1000.0

    def begin(self, audio_ms: float, arrival: float | None) -> float:
        now = self.now()
        return now if arrival is None else min(arrival * 1000.0, now)

    def end(self, work_ms: float) -> tuple[float, float]:
        """The work ends now; of work for several speakers, one's own share is the last of it."""
        now = self.now()
        return now - work_ms, now
