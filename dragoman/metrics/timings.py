"""A corpus as arrays of times, by the clock that a metric reads.

Without computation a unit's time is its delay: how much of the source had arrived. For the
computation-aware time there are three definitions:

- cumulative (SimulEval): delay + all time spent computing so far, as if a system could not listen
  while it computes;
- chunk (simulstream): delay + the computation of the unit's own chunk, as if no work ever had to
  wait for earlier work;
- honest: a chunk's work starts at its arrival or when the work before it is done, whichever is
  later, and its units appear when that work ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from dragoman.metrics.instance import Instance, Unit
from dragoman.metrics.ragged import Bools, Floats, Ints, Ragged, flatten

Computation = Literal["honest", "chunk", "cumulative"]
Compat = Literal["simuleval", "omnisteval"]
Medium = Literal["speech", "text"]

# Clocks in logs are rounded: differences below this many milliseconds mean nothing.
TICK = 1e-6


@dataclass(frozen=True, slots=True)
class Rules:
    """How to measure: every choice on which tools differ. They print in the signature."""

    unit: Unit = "word"
    length: Literal["reference", "hypothesis"] = "reference"
    computation: Computation = "honest"
    compat: Compat | None = None
    source: Medium = "speech"


@dataclass(frozen=True)
class Timings:
    """The sentences of a corpus that have times, as arrays. [rows] are these sentences."""

    instances: Sequence[Instance]  # [rows]
    rows: Ints  # [rows] which sentences of the corpus they are
    source_lengths: Floats  # [rows]
    target_lengths: Floats  # [rows]
    shape: Ragged
    delays: Floats  # [units]
    times: Floats  # [units] when each unit counts as said, by the chosen clock
    rules: Rules
    aware: bool = False  # whether these times include computation

    @cached_property
    def units_before_end(self) -> Ints:
        """How many units come before the first one said at or after the source's end. [rows]"""
        return self.shape.first_where(self.times >= self.shape.spread(self.source_lengths))

    @cached_property
    def units_until_end(self) -> Ints:
        """The same with that first one, where there is one. [rows]"""
        return np.minimum(self.units_before_end + 1, self.shape.lengths)

    @cached_property
    def sums_until_end(self) -> Floats:
        """The sum of these units' times. [rows]"""
        return self.shape.sums_of_first(self.times, self.units_until_end)

    @cached_property
    def says_speech(self) -> bool:
        return any(instance.says_speech for instance in self.instances)

    @cached_property
    def durations(self) -> Floats:
        """How long each unit sounds; text takes no time. [units]"""
        return flatten([i.durations or (0.0,) * len(i.delays) for i in self.instances])

    def select(self, keep: Bools) -> Timings:
        """The sentences to keep."""
        if keep.all():
            return self
        units = self.shape.spread(keep)
        return replace(
            self,
            instances=[i for i, kept in zip(self.instances, keep, strict=True) if kept],
            rows=self.rows[keep],
            source_lengths=self.source_lengths[keep],
            target_lengths=self.target_lengths[keep],
            shape=Ragged(self.shape.lengths[keep]),
            delays=self.delays[units],
            times=self.times[units],
        )


def plain_timings(instances: Sequence[Instance], rules: Rules) -> Timings:
    """The corpus by the clock of the source: a unit's time is its delay."""
    delays = [instance.delays for instance in instances]
    lengths = np.fromiter(map(len, delays), dtype=np.int64, count=len(delays))
    rows = np.flatnonzero(lengths)
    if len(rows) < len(instances):
        instances = [instances[row] for row in rows.tolist()]
        lengths = lengths[rows]
    flat = flatten(delays)
    return Timings(
        instances=instances,
        rows=rows,
        source_lengths=np.array([i.source_length for i in instances], dtype=float),
        target_lengths=_target_lengths(instances, lengths, rules),
        shape=Ragged(lengths),
        delays=flat,
        times=flat,
        rules=rules,
    )


def _target_lengths(instances: Sequence[Instance], spoken: Ints, rules: Rules) -> Floats:
    """The length of each reference; of what was said where there is none, or by the rules.

    As SimulEval and OmniSTEval count: words end at single spaces, so a double space adds one.
    """
    if rules.length == "hypothesis":
        return spoken.astype(float)
    references = [instance.reference for instance in instances]
    texts = [text for text in references if text is not None]
    if rules.unit == "word":
        wanted = _count_spaces(texts) + 1
    else:
        wanted = np.array([len(text.strip()) for text in texts], dtype=np.int64)
    lengths = spoken.astype(float)
    if len(texts) == len(references):
        lengths[:] = wanted
    else:
        lengths[[text is not None for text in references]] = wanted
    return lengths


def _count_spaces(texts: Sequence[str]) -> Ints:
    """The spaces in each text, counted in all texts at once."""
    letters = np.frombuffer("".join(texts).encode("ascii", "replace"), dtype=np.uint8)
    ends = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)))
    return np.diff(np.searchsorted(np.flatnonzero(letters == ord(" ")), ends), prepend=0)


def aware_timings(plain: Timings) -> Timings:
    """The same by a computation-aware clock; sentences whose log knows none are left out."""
    computation = plain.rules.computation
    elapsed = [i.elapsed or () for i in plain.instances]
    sizes = np.fromiter(map(len, elapsed), dtype=np.int64, count=len(elapsed))
    logged = _logged_times(plain)
    known = np.array([times is not None for times in logged], dtype=bool)  # [rows]
    clocked = known | (sizes == plain.shape.lengths)
    chosen, known = plain.select(clocked), known[clocked]
    flat = flatten([i.elapsed or i.delays for i in chosen.instances])
    times = CLOCKS[computation](chosen.shape, chosen.delays, flat)
    if known.any():
        times = times.copy()
        times[chosen.shape.spread(known)] = flatten([t for t in logged if t is not None])
    aware = replace(chosen, times=times, aware=True)
    if plain.rules.compat and computation == "cumulative":
        return aware  # as those tools: whatever the log says, were it all zeros
    return aware.select(known | (aware.shape.smallest(flat - aware.delays) > -TICK))


def _logged_times(plain: Timings) -> list[Sequence[float] | None]:
    """The times that a log itself knows by this definition, None where it does not."""
    if plain.rules.computation == "honest":
        return [i.ends if i.ends else None for i in plain.instances]
    if plain.rules.computation == "chunk":
        return [
            [delay + work for delay, work in zip(i.delays, i.works, strict=True)]
            if i.works
            else None
            for i in plain.instances
        ]
    return [None] * len(plain.instances)


def _cumulative(shape: Ragged, delays: Floats, elapsed: Floats) -> Floats:
    return elapsed


def _honest(shape: Ragged, delays: Floats, elapsed: Floats) -> Floats:
    return shape.finish_times(delays, _computed(shape, delays, elapsed))


def _chunk(shape: Ragged, delays: Floats, elapsed: Floats) -> Floats:
    """Units of one delay are one chunk: its work began when the chunk before it was done."""
    done = _computed(shape, delays, elapsed)
    begins = np.ones(len(delays), dtype=bool)
    begins[1:] = delays[1:] != delays[:-1]
    begins[shape.firsts] = True
    first_of_chunk = np.maximum.accumulate(np.where(begins, np.arange(len(delays)), 0))
    return delays + done - shape.previous(done)[first_of_chunk]


def _computed(shape: Ragged, delays: Floats, elapsed: Floats) -> Floats:
    """All time spent computing until each unit was said; it can only grow."""
    return shape.running_max(np.maximum(elapsed - delays, 0.0))


CLOCKS: dict[Computation, Callable[[Ragged, Floats, Floats], Floats]] = {
    "honest": _honest,
    "chunk": _chunk,
    "cumulative": _cumulative,
}
