"""One interpreted sentence or talk as the metrics see it: what was said, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from operator import le
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
    more_references: tuple[str, ...] = ()  # further ones, for the metrics that take several
    elapsed: Sequence[float] | None = None
    works: Sequence[float] | None = None
    ends: Sequence[float] | None = None
    compute: float | None = None  # all the time spent computing, silent chunks included
    erased: int | None = None  # units that were shown and taken back before the output was final
    source: str = ""
    # Speech output only: how long each chunk sounds, when the first one starts, and for every
    # chunk its start and duration.
    durations: Sequence[float] | None = None
    prediction_offset: float | None = None
    intervals: Sequence[Sequence[float]] | None = None

    @property
    def references(self) -> tuple[str, ...]:
        """All there are; what takes but one takes the first."""
        return () if self.reference is None else (self.reference, *self.more_references)

    @property
    def says_speech(self) -> bool:
        """Whether the output is sound: then `prediction` names a file and units are chunks."""
        return self.durations is not None

    def check(self, where: str) -> None:
        """Raise a sentence if the times contradict themselves; `where` names file and line."""
        if fault := self.malformed() or self.disorder():
            raise DragomanError(f"{where}: sentence {self.index} {fault}.")

    def malformed(self) -> str | None:
        """Say so if something is no number or lists that belong together differ in length."""
        if not isfinite(self.source_length) or self.source_length < 0:
            return f"has a source length of {self.source_length}; it must be a positive number"
        for name, values in (
            ("delays", self.delays),
            ("elapsed", self.elapsed),
            ("works", self.works),
            ("ends", self.ends),
            ("durations", self.durations),
        ):
            if values is None:
                continue
            if len(values) not in (0, len(self.delays)):
                return f"has {len(self.delays)} delays but {len(values)} {name}"
            if not isfinite(sum(values)):
                return f"has {name} that are not numbers"
        return None

    def disorder(self) -> str | None:
        """Say so if a delay is negative or before the one before it."""
        delays = self.delays
        if len(delays) and min(delays) < 0:
            return f"has a negative delay ({min(delays):g})"
        if all(map(le, delays, islice(delays, 1, None))):
            return None
        unit = next(i for i in range(1, len(delays)) if delays[i] < delays[i - 1])
        before, after = delays[unit - 1], delays[unit]
        return f"has unsorted delays: {after:g} follows {before:g} at unit {unit + 1}"

    def miscount(self, unit: Unit) -> str | None:
        """Say so if the prediction has not as many units as there are delays."""
        if self.says_speech:
            return None
        count = len(self.prediction.split()) if unit == "word" else len(self.prediction)
        counts = {count}
        if unit == "char":  # some tools give a time to spaces, some do not
            counts.add(count - self.prediction.count(" "))
        if len(self.delays) in counts:
            return None
        return (
            f"has {count} {unit}s in its prediction but {len(self.delays)} delays; it may be "
            "measured in another unit (--unit word or --unit char)"
        )
