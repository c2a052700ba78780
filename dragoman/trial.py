"""A two-second trial: how fast this machine interprets, and the setting that suits it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.audio.chunk import Chunk
from dragoman.clock import SimulatedClock
from dragoman.setup import Setup, System

TALKS = Path(__file__).parent / "talks"
SPEECH = {"en": "report.en.ogg"}  # who takes German for English works less, or more
OTHER = "weather.de.ogg"
SECONDS = 2.0
"""How long a trial takes at most, once the model is loaded."""
AT_EASE = 0.7
"""Work per second of speech from which on a machine keeps up, long sentences included."""

LADDER: tuple[tuple[float, int], ...] = ((500.0, 5), (500.0, 1), (1000.0, 1), (2000.0, 1))
"""Steps in ms and beams, best first; each costs less than the one before."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A setting that was tried on this machine."""

    system: System
    load: float
    """Seconds of work for a second of speech."""

    @property
    def keeps_up(self) -> bool:
        return self.load <= AT_EASE

    def sentence(self) -> str:
        setup = self.system.setup
        chosen = f"steps of {setup.step_ms / 1000:g} s, {setup.beams} beam{'s'[: setup.beams > 1]}"
        verdict = (
            "" if self.keeps_up else "; that is too slow for a live speaker, try a smaller model"
        )
        return f"Tried on this machine: {chosen}, {self.load:.2f} s of work per second{verdict}."


def suited(
    setup: Setup,
    step: float | None = None,
    beams: int | None = None,
    timer: Callable[[], float] = time.perf_counter,
) -> Trial:
    """The best setting with which this machine keeps up, or the cheapest if none does.

    `step` (ms) and `beams` are not touched where they are given.
    """
    rungs = dict.fromkeys((step or rung, beams or width) for rung, width in LADDER)
    trial: Trial | None = None
    for step_ms, width in rungs:
        if trial is not None and trial.system.setup.beams == width:
            system = trial.system.changed(step_ms=step_ms)
        else:
            system = System(setup.with_changes(step_ms=step_ms, beams=width))
        trial = measured(system, timer)
        if trial.keeps_up:
            break
    assert trial is not None
    return trial


def measured(system: System, timer: Callable[[], float] = time.perf_counter) -> Trial:
    """Interpret some speech for two seconds and see how much of it was heard."""
    system.model  # noqa: B018  loading is not work on speech
    for chunk in itertools.islice(_speech(system.setup), 2):  # the first calls warm up
        system.interpreter().hear(chunk)
    interpreter = system.interpreter(clock=SimulatedClock(timer))
    work_ms = heard_ms = 0.0
    for chunk in _speech(system.setup):
        hearing = interpreter.hear(chunk).hearing
        work_ms, heard_ms = work_ms + hearing.compute_ms, hearing.audio_ms
        if work_ms >= SECONDS * 1000:
            break
    return Trial(system, work_ms / max(heard_ms, 1.0))


def _speech(setup: Setup) -> Iterator[Chunk]:
    from dragoman.audio.source import open_audio

    return open_audio(TALKS / SPEECH.get(setup.source or "", OTHER), step_ms=setup.step_ms)
