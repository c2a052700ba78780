"""Detectors count the words heard so far: the pre-decision module of paper 000.

A detector is a pure function of the time heard and of what a stream tells. The interpreter keeps
the running maximum, because a count that is re-made from growing context can shrink. One that
`needs` nothing of the model is asked before the model hears, so that no encoding is paid for sound
after which nothing may be said.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from dragoman.errors import DragomanError
from dragoman.models import Feature, Stream


class Detector(Protocol):
    """Counts source words."""

    @property
    def needs(self) -> frozenset[Feature]: ...

    def count(self, heard_ms: float, stream: Stream) -> int:
        """Source words in the first `heard_ms` of a stream."""


@dataclass(frozen=True, slots=True)
class FixedStep:
    """A word every `step_ms` (eq. 2: a decision wherever the time heard is a multiple of it).

    280 ms is about the mean length of an English word in talks.
    """

    step_ms: float = 280.0
    needs: ClassVar[frozenset[Feature]] = frozenset()

    def __post_init__(self) -> None:
        if not self.step_ms > 0:
            raise DragomanError(f"The fixed detector needs a step above 0 ms, not {self.step_ms}.")

    def count(self, heard_ms: float, stream: Stream) -> int:
        return int(heard_ms / self.step_ms + 1e-9)


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Word (or phoneme) ends known from an alignment: the oracle of eq. 3."""

    ends_ms: tuple[float, ...] = field(default=())
    needs: ClassVar[frozenset[Feature]] = frozenset()

    def __post_init__(self) -> None:
        if any(b < a for a, b in zip(self.ends_ms, self.ends_ms[1:], strict=False)):
            raise DragomanError("The word boundaries given to the detector are not in order.")

    def count(self, heard_ms: float, stream: Stream) -> int:
        return bisect_right(self.ends_ms, heard_ms + 1e-6)


@dataclass(frozen=True, slots=True)
class CtcWords:
    """Words counted by the model's CTC head (paper 001's adaptive detection)."""

    needs: ClassVar[frozenset[Feature]] = frozenset({Feature.CTC})

    def count(self, heard_ms: float, stream: Stream) -> int:
        return stream.words_heard


@dataclass(frozen=True, slots=True)
class LearnedBoundaries:
    """Words counted by a head that was trained to fire at word ends."""

    needs: ClassVar[frozenset[Feature]] = frozenset({Feature.BOUNDARIES})

    def count(self, heard_ms: float, stream: Stream) -> int:
        return stream.ends_heard


@dataclass(frozen=True, slots=True)
class TranscriptWords:
    """Words counted in what the model writes down of the source: exact, at the price of a draft."""

    needs: ClassVar[frozenset[Feature]] = frozenset({Feature.TRANSCRIPT})

    def count(self, heard_ms: float, stream: Stream) -> int:
        return stream.words_heard
