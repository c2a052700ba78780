"""Detectors count the words heard so far: the pre-decision module."""

from collections.abc import Callable

from dragoman.detectors.base import (
    Boundaries,
    CtcWords,
    Detector,
    FixedStep,
    LearnedBoundaries,
    TranscriptWords,
)
from dragoman.errors import DragomanError

DETECTORS: dict[str, Callable[[], Detector]] = {
    "fixed": FixedStep,
    "ctc": CtcWords,
    "learned": LearnedBoundaries,
    "transcript": TranscriptWords,
}


def make_detector(name: str, step_ms: float = 280.0) -> Detector:
    """A detector by its name on the command line."""
    if name == "fixed":
        return FixedStep(step_ms)
    if name in DETECTORS:
        return DETECTORS[name]()
    raise DragomanError(f"There is no detector '{name}'. There are: {', '.join(DETECTORS)}.")


__all__ = [
    "DETECTORS",
    "Boundaries",
    "CtcWords",
    "Detector",
    "FixedStep",
    "LearnedBoundaries",
    "TranscriptWords",
    "make_detector",
]
