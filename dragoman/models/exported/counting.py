"""How many source words an exported net has heard, as its heads tell.

A CTC head names the units: repeats are one, blanks none, and units make words. A boundary head
returns, for every state, the probability that a word ends there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dragoman.models.exported.net import Array
from dragoman.models.exported.pieces import Pieces


def _nothing() -> Array:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the heads say of some states; empty for a head that is not there."""

    labels: Array = field(default_factory=_nothing)  # best CTC units, before collapsing
    boundaries: Array = field(default_factory=_nothing)

    def part(self, states: slice) -> Evidence:
        return Evidence(self.labels[states], self.boundaries[states])


@dataclass(frozen=True, slots=True)
class Counted:
    """Words by the CTC head, word ends by the boundary head."""

    words: int = 0
    ends: int = 0

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.words + other.words, self.ends + other.ends)

    def __sub__(self, other: Counted) -> Counted:
        return Counted(self.words - other.words, self.ends - other.ends)


class WordCounter:
    """Counts in evidence that comes in pieces."""

    def __init__(self, pieces: Pieces | None, blank: int) -> None:
        self._pieces, self._blank = pieces, blank
        self._label, self._above = blank, False  # of the state before
        self.counted = Counted()

    def hear(self, evidence: Evidence) -> Counted:
        """The count with the next states."""
        words = 0 if self._pieces is None else self._words(evidence.labels, self._pieces)
        self.counted += Counted(words, self._ends(evidence.boundaries))
        return self.counted

    def _words(self, labels: Array, pieces: Pieces) -> int:
        units = []
        for label in labels.tolist():
            if label not in (self._label, self._blank):
                units.append(label)
            self._label = label
        return pieces.count(units)

    def _ends(self, probabilities: Array) -> int:
        """Neighbouring states above one half are one end."""
        ends = 0
        for probability in probabilities.tolist():
            above = probability > 0.5
            ends += above and not self._above
            self._above = above
        return ends
