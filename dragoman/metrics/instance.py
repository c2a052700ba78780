"""One interpreted sentence or talk as the metrics see it: what was said, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Literal

from dragoman.errors import DragomanError

Unit = Literal["word", "char"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One source (a sentence, a talk) with what was said about it and the time of every unit.

    A unit is a word or a character of the prediction, or a chunk of sound for speech output.
    Times are milliseconds since the source began; for text sources they are source words.

    `delays` says how much of the source had arrived when a unit was said. Three further clocks
    add the time spent computing, each by another definition (see docs/metrics.md); a log that
    does not know them leaves them None:

    - `elapsed`: delay + all wall time since the source began (SimulEval's definition);
    - `works`: how long the chunk that said the unit was worked on (simulstream adds just this);
    - `ends`: the honest time at which the unit appeared to a listener.
    """

    index: int
    prediction: str
    delays: Sequence[float]
    source_length: float
    reference: str | None = None
    elapsed: Sequence[float] | None = None
    works: Sequence[float] | None = None
    ends: Sequence[float] | None = None
    compute: float | None = None  # all the time spent computing, silent chunks included
    source: str = ""
    # Speech output only: how long each chunk sounds, when the first one starts, and for every
    # chunk its start and duration.
    durations: Sequence[float] | None = None
    prediction_offset: float | None = None
    intervals: Sequence[Sequence[float]] | None = None

    @property
    def says_speech(self) -> bool:
        """Whether the output is sound: then `prediction` names a file and units are chunks."""
        return self.durations is not None

    def check(self, where: str, unit: Unit | None = None) -> None:
        """Raise a sentence if the times contradict themselves; `where` names file and line.

        With a `unit`, the prediction must also have as many units as there are delays.
        """
        fault = self._fault(unit)
        if fault:
            raise DragomanError(f"{where}: sentence {self.index} {fault}.")

    def _fault(self, unit: Unit | None) -> str | None:
        if not isfinite(self.source_length) or self.source_length < 0:
            return f"has a source length of {self.source_length}; it must be a positive number"
        fault = _fault_of_times("delays", self.delays)
        if fault:
            return fault
        for name in ("elapsed", "works", "ends", "durations", "intervals"):
            values = getattr(self, name)
            if values is not None and len(values) not in (0, len(self.delays)):
                return f"has {len(self.delays)} delays but {len(values)} {name}"
        for name in ("elapsed", "works", "ends", "durations"):
            values = getattr(self, name)
            if values is not None and not all(map(isfinite, values)):
                return f"has {name} that are not numbers"
        if unit is not None and not self.says_speech:
            counts = unit_counts(self.prediction, unit)
            if len(self.delays) not in counts:
                return (
                    f"has {counts[0]} {unit}s in its prediction but {len(self.delays)} delays; "
                    "is it measured in another unit (--unit word or --unit char)?"
                )
        return None


def _fault_of_times(name: str, times: Sequence[float]) -> str | None:
    """What is wrong with times that must be numbers, not negative, and never go down."""
    if not all(map(isfinite, times)):
        return f"has {name} that are not numbers"
    if times and min(times) < 0:
        return f"has negative {name} ({min(times):g})"
    for position, (one, following) in enumerate(pairwise(times)):
        if following < one:
            return f"has unsorted {name}: {following:g} follows {one:g} at unit {position + 2}"
    return None


def unit_counts(prediction: str, unit: Unit) -> tuple[int, ...]:
    """How many delays a prediction may have; some tools time the spaces between characters."""
    if unit == "word":
        return (len(prediction.split()),)
    return (len(prediction) - prediction.count(" "), len(prediction))
