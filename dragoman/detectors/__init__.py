"""Detectors count the words heard so far: the pre-decision module."""

from collections.abc import Callable, Set
from dataclasses import is_dataclass
from pathlib import Path
from typing import cast

from dragoman.detectors.base import (
    Boundaries,
    CtcWords,
    Detector,
    FixedStep,
    LearnedBoundaries,
    TranscriptWords,
)
from dragoman.detectors.ends import NoEndsError, read_ends
from dragoman.errors import DragomanError
from dragoman.knobs import build, is_own, own_class, split_spec

DETECTORS: dict[str, Callable[[], Detector]] = {
    "fixed": FixedStep,
    "ctc": CtcWords,
    "learned": LearnedBoundaries,
    "transcript": TranscriptWords,
}


def make_detector(
    name: str, step_ms: float = 280.0, *, recording: str = "", start_ms: float = 0.0
) -> Detector:
    """A detector by its name on the command line.

    `fixed:120` counts a word every 120 ms, whatever `step_ms` says. `boundaries:FILE` takes the
    word ends of a `recording`, heard from `start_ms` on, from a file. `package.module.Class:knob=v`
    is one of your own. That imports it: who takes names from others asks `is_own` first.
    """
    if is_own(name):
        return _own(name)
    kind, _, file = name.partition(":")
    if kind == "boundaries" and file:
        return read_ends(Path(file).expanduser(), recording, start_ms)
    if kind == "fixed":
        return FixedStep(_milliseconds(file) if file else step_ms)
    if name in DETECTORS:
        return DETECTORS[name]()
    known = ", ".join([*DETECTORS, "fixed:MS", "boundaries:FILE", "package.module.Class"])
    raise DragomanError(f"There is no detector '{name}'. There are: {known}.")


def _own(spec: str) -> Detector:
    """A new one for every speaker, so that it may remember what it has counted."""
    name, knobs = split_spec(spec, "detector")
    kind = own_class(name, "detector")
    if not (isinstance(kind, type) and is_dataclass(kind) and callable(getattr(kind, "count", 0))):
        raise DragomanError(f"'{name}' is no detector: one is a dataclass with a method 'count'.")
    detector = build(kind, "detector", name, knobs)
    if not isinstance(getattr(detector, "needs", None), Set):
        raise DragomanError(
            f"Detector '{name}' does not say what it needs of a model: needs = frozenset(), "
            "if nothing."
        )
    return cast(Detector, detector)


def _milliseconds(text: str) -> float:
    number = text.removesuffix("ms")
    if not number.isdecimal() or not int(number):
        raise DragomanError(f"'fixed:{text}' should name milliseconds, as fixed:120 does.")
    return float(number)


def check_detector(name: str, step_ms: float = 280.0) -> None:
    """Tell a detector that does not exist before any model is loaded."""
    kind, _, file = name.partition(":")
    if kind == "boundaries" and file:
        if not Path(file).expanduser().is_file():
            raise DragomanError(f"There is no file {file} with word ends.")
    else:
        make_detector(name, step_ms)


__all__ = [
    "DETECTORS",
    "Boundaries",
    "CtcWords",
    "Detector",
    "FixedStep",
    "LearnedBoundaries",
    "NoEndsError",
    "TranscriptWords",
    "check_detector",
    "make_detector",
    "read_ends",
]
