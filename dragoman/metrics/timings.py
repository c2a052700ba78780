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
from dataclasses import dataclass
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
    shape: Ragged
    delays: Floats  # [units]
    times: Floats  # [units] when each unit counts as said, by the chosen clock
    aware: bool  # whether these times include computation
    rules: Rules

    @cached_property
    def source_lengths(self) -> Floats:
        return np.array([instance.source_length for instance in self.instances], dtype=float)

    @cached_property
    def target_lengths(self) -> Floats:
        """The length of each reference; of what was said where there is none, or by the rules."""
        if self.rules.length == "hypothesis":
            return self.shape.lengths.astype(float)
        unit = self.rules.unit
        return np.array(
            [
                len(instance.delays)
                if instance.reference is None
                else reference_length(instance.reference, unit)
                for instance in self.instances
            ],
            dtype=float,
        )

    @cached_property
    def says_speech(self) -> bool:
        return any(instance.says_speech for instance in self.instances)

    @cached_property
    def durations(self) -> Floats:
        """How long each unit sounds; text takes no time. [units]"""
        return flatten([i.durations or (0.0,) * len(i.delays) for i in self.instances])


def reference_length(reference: str, unit: Unit) -> int:
    """A reference's length as SimulEval and OmniSTEval count it: words end at single spaces."""
    return reference.count(" ") + 1 if unit == "word" else len(reference.strip())


def plain_timings(instances: Sequence[Instance], rules: Rules) -> Timings:
    """The corpus by the clock of the source: a unit's time is its delay."""
    rows = [row for row, instance in enumerate(instances) if len(instance.delays)]
    chosen = [instances[row] for row in rows]
    shape = Ragged(np.array([len(instance.delays) for instance in chosen], dtype=np.int64))
    delays = flatten([instance.delays for instance in chosen])
    return Timings(chosen, np.array(rows, dtype=np.int64), shape, delays, delays, False, rules)


def aware_timings(instances: Sequence[Instance], rules: Rules) -> Timings:
    """The corpus by a computation-aware clock; sentences whose log knows none are left out."""
    rows = [row for row, instance in enumerate(instances) if _has_clock(instance, rules)]
    chosen = [instances[row] for row in rows]
    plain = plain_timings(chosen, rules)
    shape, delays = plain.shape, plain.delays
    elapsed = flatten([instance.elapsed or instance.delays for instance in chosen])
    times = CLOCKS[rules.computation](shape, delays, elapsed)
    logged = _logged_times(chosen, rules)
    known = np.array([values is not None for values in logged], dtype=bool)
    if known.any():
        times = times.copy()
        times[shape.spread(known)] = flatten([values for values in logged if values is not None])
    aware = Timings(chosen, np.array(rows, dtype=np.int64), shape, delays, times, True, rules)
    if rules.compat and rules.computation == "cumulative":
        return aware  # as those tools: whatever the log says, were it all zeros
    return select(aware, known | (shape.smallest(elapsed - delays) > -TICK))


def select(timings: Timings, keep: Bools) -> Timings:
    """The sentences to keep."""
    if keep.all():
        return timings
    units = timings.shape.spread(keep)
    return Timings(
        [i for i, kept in zip(timings.instances, keep, strict=True) if kept],
        timings.rows[keep],
        Ragged(timings.shape.lengths[keep]),
        timings.delays[units],
        timings.times[units],
        timings.aware,
        timings.rules,
    )


def _has_clock(instance: Instance, rules: Rules) -> bool:
    """Whether a sentence has units and a log of computation that fits them."""
    name = LOGGED.get(rules.computation, "elapsed")
    size = len(instance.delays)
    return size > 0 and (
        (instance.elapsed is not None and len(instance.elapsed) == size)
        or (getattr(instance, name) is not None and len(getattr(instance, name)) == size)
    )


# The field of an instance that holds a clock's times outright, where a log kept them.
LOGGED: dict[Computation, str] = {"honest": "ends", "chunk": "works"}


def _logged_times(instances: Sequence[Instance], rules: Rules) -> list[Sequence[float] | None]:
    """The times that the log itself knows by this definition, None where it does not."""
    if rules.computation == "honest":
        return [instance.ends for instance in instances]
    if rules.computation == "chunk":
        return [
            None
            if instance.works is None
            else [delay + work for delay, work in zip(instance.delays, instance.works, strict=True)]
            for instance in instances
        ]
    return [None] * len(instances)


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
