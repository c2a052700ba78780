"""Latency metrics: small functions from a corpus's timings to one value per sentence.

A value that is undefined is NaN. d are the units' times, X the source's length, Y the
reference's, n the number of units; positions i count from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dragoman.metrics.atd import average_token_delay
from dragoman.metrics.instance import Instance
from dragoman.metrics.ragged import Floats, Ints
from dragoman.metrics.timings import TICK, Timings


def average_lagging(timings: Timings) -> Floats:
    """AL: the mean of d_i - i X/Y up to the first unit said after the source's end."""
    return lagging(timings, timings.target_lengths)


def length_adaptive_average_lagging(timings: Timings) -> Floats:
    """LAAL: AL at the rate of the longer of reference and output, so babble is not rewarded."""
    return lagging(timings, np.maximum(timings.shape.lengths, timings.target_lengths))


def yet_another_average_lagging(timings: Timings) -> Floats:
    """YAAL: LAAL without the units said after the source's end; undefined when all are."""
    lengths = np.maximum(timings.shape.lengths, timings.target_lengths)
    return mean_lag(timings, lengths, timings.units_before_end)


def lagging(timings: Timings, target_lengths: Floats) -> Floats:
    """The mean lag behind a pace that says `target_lengths` units in the source's time."""
    lags = _lags(timings, target_lengths, timings.units_until_end, timings.sums_until_end)
    # A system that begins after the source's end lags by the time of its first unit.
    firsts = timings.times[timings.shape.firsts]
    late = firsts > timings.source_lengths
    if timings.rules.compat != "simuleval":
        late &= timings.source_lengths > 0
    return np.where(late, firsts, lags)


def mean_lag(timings: Timings, target_lengths: Floats, counted: Ints) -> Floats:
    """The mean of d_i - i X/Y over the first `counted` units of each sentence."""
    sums = timings.shape.sums_of_first(timings.times, counted)
    return _lags(timings, target_lengths, counted, sums)


def _lags(timings: Timings, target_lengths: Floats, counted: Ints, sums: Floats) -> Floats:
    steps = _ratio(timings.source_lengths, target_lengths)
    lags = _ratio(sums, counted) - (counted - 1) / 2 * steps
    return np.where(timings.source_lengths > 0, lags, np.nan)


def differentiable_average_lagging(timings: Timings) -> Floats:
    """DAL: the mean of d'_i - i X/n, where d' leaves at least X/n between any two units."""
    shape = timings.shape
    steps = _ratio(timings.source_lengths, shape.lengths)
    # d'_i = max(d_i, d'_{i-1} + X/n): the running maximum, once i X/n is taken off.
    lags = shape.running_max(timings.times - shape.positions * shape.spread(steps))
    return np.where(timings.source_lengths > 0, shape.sums(lags) / shape.lengths, np.nan)


def average_proportion(timings: Timings) -> Floats:
    """AP: the sum of d_i / (X Y), the share of the source read per unit of the reference."""
    area = timings.source_lengths * timings.target_lengths
    return _ratio(timings.shape.sums(timings.times), area)


def start_offset(timings: Timings) -> Floats:
    """StartOffset: when the first unit was said."""
    return timings.times[timings.shape.firsts]


def end_offset(timings: Timings) -> Floats:
    """EndOffset: how long after the source's end the last unit was said, or its sound ended."""
    ends = timings.times
    if timings.says_speech:
        ends = timings.shape.finish_times(ends, timings.shape.running_sums(timings.durations))
    last: Floats = ends[timings.shape.lasts]
    return last - timings.source_lengths


def number_of_chunks(timings: Timings) -> Floats:
    """NumChunks: how many units were said, as SimulEval counts: words or characters of text."""
    return timings.shape.lengths.astype(float)


def real_time_factor(timings: Timings) -> Floats:
    """RTF: time spent computing over the source's length; SimulEval's is the last time over it."""
    if timings.rules.compat == "simuleval":
        spent = timings.times[timings.shape.lasts]
    else:
        spent = np.array([_computed(instance) for instance in timings.instances], dtype=float)
    return _ratio(spent, timings.source_lengths)


def _computed(instance: Instance) -> float:
    """All the time spent computing, NaN where the log does not know it."""
    if instance.compute is not None:
        return instance.compute
    if not instance.elapsed:
        return np.nan
    spent = instance.elapsed[-1] - instance.delays[-1]
    return spent if spent > -TICK else np.nan


def normalised_erasure(timings: Timings) -> Floats:
    """Erasure: units shown and taken back, per unit of the final output."""
    erased = [np.nan if i.erased is None else i.erased for i in timings.instances]
    return _ratio(np.array(erased, dtype=float), timings.shape.lengths)


def _ratio(numerators: Floats | Ints, denominators: Floats | Ints) -> Floats:
    """Division that returns NaN where the denominator is zero."""
    known = denominators != 0
    ratios: Floats = np.full(len(known), np.nan)
    return np.divide(numerators, denominators, out=ratios, where=known)


@dataclass(frozen=True, slots=True)
class LatencyMetric:
    """A metric with how it adds up over a corpus and how it prints."""

    compute: Callable[[Timings], Floats]
    is_time: bool = True  # otherwise a ratio or a count
    # The corpus value is the mean over sentences; weighted, it is the ratio of two sums.
    weigh: Callable[[Timings], Floats] | None = None
    has_aware: bool = True  # whether it also exists computation-aware


def _source_weights(timings: Timings) -> Floats:
    if timings.rules.compat == "simuleval":
        return np.ones(len(timings.rows))
    return timings.source_lengths


LATENCY: dict[str, LatencyMetric] = {
    "AL": LatencyMetric(average_lagging),
    "LAAL": LatencyMetric(length_adaptive_average_lagging),
    "DAL": LatencyMetric(differentiable_average_lagging),
    "AP": LatencyMetric(average_proportion, is_time=False),
    "ATD": LatencyMetric(average_token_delay),
    "YAAL": LatencyMetric(yet_another_average_lagging),
    "StartOffset": LatencyMetric(start_offset),
    "EndOffset": LatencyMetric(end_offset),
    "NumChunks": LatencyMetric(number_of_chunks, is_time=False),
    "RTF": LatencyMetric(real_time_factor, False, _source_weights, has_aware=False),
    "Erasure": LatencyMetric(normalised_erasure, False, number_of_chunks, has_aware=False),
}
