"""How sure a score is, and whether two systems really differ.

Everything works on the statistics of sentences: rows of numbers that add up, and a function from
sums to scores. A mean has two (the value and a 1), BLEU has ten. So a corpus that is resampled
is one matrix product away from its score, whatever the metric.

- Confidence interval: percentiles over bootstrap resamples (Efron 1979; Koehn 2004 for BLEU).
- Paired bootstrap: how often a difference as large appears when its mean is shifted to zero.
- Paired approximate randomisation: how often a difference as large appears when the outputs of
  the two systems are swapped at random, sentence by sentence (Riezler and Maxwell 2005).
- Paired t-test, on what each sentence contributes to the score (the jackknife's pseudo-values;
  for a mean they are the sentences' own values).

Two systems are compared on the sentences in which both have a value: who says nothing where it
would be late is not faster for it.

All draws come from a seed, so a result can be had again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Numbers drawn at a time: keeps resampling a large corpus within some tens of megabytes.
DRAWS = 4_000_000


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric on one system's sentences."""

    name: str
    statistics: Floats  # [sentences, numbers], they add up
    score: Callable[[Floats], Floats]  # sums [rows, numbers] -> scores [rows]
    defined: Bools | None = None  # [sentences] those that count; all, where nothing is said

    @property
    def counted(self) -> Bools:
        """The sentences that count: the others have no value, and zeros for statistics."""
        return np.ones(len(self.statistics), bool) if self.defined is None else self.defined

    def of(self, rows: Sequence[int] | Ints | Bools) -> Measure:
        """The same metric on some of the sentences, or on all in another order."""
        defined = None if self.defined is None else self.defined[rows]
        return replace(self, statistics=self.statistics[rows], defined=defined)

    def where(self, kept: Bools) -> Measure:
        """The same metric as if, of the sentences that count, those alone did that are kept."""
        return replace(self, statistics=np.where(kept[:, None], self.statistics, 0.0), defined=kept)

    @property
    def value(self) -> float:
        """The score of the whole corpus."""
        return float(self.score(self.statistics.sum(axis=0, keepdims=True))[0])


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to resample: how often, from which seed, and how sure an interval is to be."""

    resamples: int = 1000
    seed: int = 12345
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise DragomanError(f"Resampling {self.resamples} times says nothing; take 1000.")
        if not 0 < self.level < 1:
            raise DragomanError(
                f"A confidence level of {self.level:g} is impossible; it lies between 0 and 1."
            )


DEFAULT = Sampling()


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a score lies, as sure as the level says."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems by one metric: the difference is the second minus the first.

    The p-values say how likely so large a difference is if the systems are equally good; NaN
    where that cannot be said. Everything is about the sentences in which both have a value.
    """

    name: str
    first: float
    second: float
    difference: float
    interval: Interval
    p_bootstrap: float
    p_randomisation: float
    p_t_test: float
    sentences: int  # in which both have a value
    first_lacks: tuple[int, ...] = ()  # those in which only the second has one
    second_lacks: tuple[int, ...] = ()


def mean_measure(name: str, values: Sequence[float] | Floats) -> Measure:
    """A metric whose corpus value is the mean over sentences; NaN means undefined, left out."""
    numbers = np.asarray(values, dtype=float)
    known = np.isfinite(numbers)
    statistics = np.column_stack((np.where(known, numbers, 0.0), known))
    return Measure(name, statistics, ratio_of_sums, known)


def ratio_of_sums(sums: Floats) -> Floats:
    """The first number over the second, NaN where that is zero."""
    ratios: Floats = np.full(len(sums), np.nan)
    return np.divide(sums[:, 0], sums[:, 1], out=ratios, where=sums[:, 1] != 0)


def confidence_intervals(
    measures: Sequence[Measure], sampling: Sampling = DEFAULT
) -> list[Interval]:
    """The bootstrap percentile interval of each metric, all from the same resamples."""
    sums = _bootstrap_sums([measure.statistics for measure in measures], sampling)
    pairs = zip(measures, sums, strict=True)
    return [_interval(measure.score(drawn), sampling.level) for measure, drawn in pairs]


def compare(
    first: Sequence[Measure], second: Sequence[Measure], sampling: Sampling = DEFAULT
) -> list[Comparison]:
    """Compare two systems on the same sentences, metric by metric."""
    for one, other in zip(first, second, strict=True):
        if one.name != other.name or one.statistics.shape != other.statistics.shape:
            raise DragomanError(
                f"Cannot compare {one.name} of {len(one.statistics)} sentences with {other.name} "
                f"of {len(other.statistics)}: both systems need the same sentences and metrics."
            )
    pairs = [_on_the_same(one, other) for one, other in zip(first, second, strict=True)]
    ones, others = [one.statistics for one, _ in pairs], [other.statistics for _, other in pairs]
    resampled = _bootstrap_sums([*ones, *others], sampling)
    swapped = _swapped_sums(ones, others, sampling)
    found = []
    for i, (one, other) in enumerate(pairs):
        drawn = other.score(resampled[len(pairs) + i]) - one.score(resampled[i])
        exchanged = other.score(swapped[1][i]) - one.score(swapped[0][i])
        compared = _compare_one(one, other, drawn, exchanged, sampling.level)
        own, its = first[i].counted, second[i].counted
        found.append(
            replace(compared, first_lacks=_rows(its & ~own), second_lacks=_rows(own & ~its))
        )
    return found


def _on_the_same(one: Measure, other: Measure) -> tuple[Measure, Measure]:
    """Both on the sentences in which both have a value.

    Two computations of the same numbers may differ in the last bit, and a test of nothing but
    rounding would call that a difference: then they are taken for one.
    """
    both = one.counted & other.counted
    one, other = one.where(both), other.where(both)
    rounded = np.allclose(one.statistics, other.statistics, rtol=1e-12, atol=1e-12, equal_nan=True)
    return one, one if rounded else other


def _rows(chosen: Bools) -> tuple[int, ...]:
    return tuple(np.flatnonzero(chosen).tolist())


def _compare_one(
    one: Measure, other: Measure, resampled: Floats, swapped: Floats, level: float
) -> Comparison:
    difference = other.value - one.value
    drawn = resampled[np.isfinite(resampled)]
    centred = drawn - drawn.mean() if len(drawn) else drawn
    return Comparison(
        name=one.name,
        first=one.value,
        second=other.value,
        difference=difference,
        interval=_interval(resampled, level),
        p_bootstrap=_share_as_large(centred, difference),
        p_randomisation=_share_as_large(swapped[np.isfinite(swapped)], difference),
        p_t_test=paired_t_test(*map(pseudo_values, _counted(one, other))).p,
        sentences=int(np.count_nonzero(one.counted)),
    )


def _counted(one: Measure, other: Measure) -> list[Measure]:
    """Both without the sentences that count for neither, such as those without a value: they say
    nothing about how much sentences differ."""
    rows = (one.statistics != 0).any(axis=1) | (other.statistics != 0).any(axis=1)
    return [one.of(rows), other.of(rows)]


def _share_as_large(drawn: Floats, observed: float) -> float:
    """How many of the differences drawn by chance are as large; the observed one is one too.

    Sums in another order round otherwise, hence the hair's breadth of tolerance.
    """
    if not len(drawn) or not math.isfinite(observed):
        return math.nan
    as_large = np.abs(drawn) >= abs(observed) * (1 - 1e-9) - 1e-12
    return float((np.count_nonzero(as_large) + 1) / (len(drawn) + 1))


def _interval(scores: Floats, level: float) -> Interval:
    known = scores[np.isfinite(scores)]
    if not len(known):
        return Interval(math.nan, math.nan)
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


# --- drawing --------------------------------------------------------------------------------------


def _bootstrap_sums(statistics: Sequence[Floats], sampling: Sampling) -> list[Floats]:
    """Sums over as many sentences as there are, drawn with replacement. [resamples, numbers]"""
    sentences = len(statistics[0])
    generator = np.random.default_rng(sampling.seed)

    def weights(rows: int) -> Floats:
        drawn = generator.integers(0, sentences, (rows, sentences))
        drawn += np.arange(rows)[:, None] * sentences
        counts = np.bincount(drawn.ravel(), minlength=rows * sentences)
        return counts.reshape(rows, sentences).astype(float)

    return _weighted_sums(statistics, weights, sampling.resamples)


def _swapped_sums(
    first: Sequence[Floats], second: Sequence[Floats], sampling: Sampling
) -> tuple[list[Floats], list[Floats]]:
    """Sums of both systems after each sentence's outputs are swapped by the toss of a coin."""
    generator = np.random.default_rng(sampling.seed)
    sentences = len(first[0])

    def coins(rows: int) -> Floats:
        return generator.integers(0, 2, (rows, sentences)).astype(float)

    moved = [other - one for one, other in zip(first, second, strict=True)]
    shifts = _weighted_sums(moved, coins, sampling.resamples)
    return (
        [one.sum(axis=0) + shift for one, shift in zip(first, shifts, strict=True)],
        [other.sum(axis=0) - shift for other, shift in zip(second, shifts, strict=True)],
    )


def _weighted_sums(
    statistics: Sequence[Floats], draw: Callable[[int], Floats], resamples: int
) -> list[Floats]:
    """For every draw of weights the weighted sums of all statistics, some draws at a time."""
    table = np.concatenate(statistics, axis=1)
    if not len(table):
        raise DragomanError("There is no sentence to resample.")
    step = max(1, DRAWS // len(table))
    sizes = [min(step, resamples - begin) for begin in range(0, resamples, step)]
    sums = np.concatenate([draw(rows) @ table for rows in sizes])
    ends = np.cumsum([block.shape[1] for block in statistics])
    return [np.ascontiguousarray(part) for part in np.split(sums, ends[:-1], axis=1)]


# --- the t-test -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TTest:
    """Student's t of paired differences, its degrees of freedom and the two-sided p-value."""

    t: float
    freedom: int
    p: float


def pseudo_values(measure: Measure) -> Floats:
    """What each sentence contributes: n times the score, less n - 1 times that without it."""
    sentences = len(measure.statistics)
    without = measure.score(measure.statistics.sum(axis=0) - measure.statistics)
    return sentences * measure.value - (sentences - 1) * without


def paired_t_test(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> TTest:
    """Whether the mean of second minus first differs from zero."""
    differences = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    differences = differences[np.isfinite(differences)]
    freedom = len(differences) - 1
    if freedom < 1:
        return TTest(math.nan, max(freedom, 0), math.nan)
    mean = float(differences.mean())
    error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    if error == 0:
        return TTest(math.copysign(math.inf, mean), freedom, 0.0) if mean else TTest(0, freedom, 1)
    t = mean / error
    return TTest(t, freedom, student_p(t, freedom))


def student_p(t: float, freedom: float) -> float:
    """The chance that Student's t with these degrees of freedom is beyond ±t."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - incomplete_beta(b, a, 1 - x)
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta) / a
    return front * _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """1 / (1 + d1 / (1 + d2 / (1 + …))), evaluated forwards by Lentz's method."""
    tiny = 1e-300  # stands for a zero, by which Lentz's method would divide
    value = upper = 1.0
    lower = 0.0
    for step in range(1, 10_000):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1 / ((1 + term * lower) or tiny)
        upper = (1 + term / upper) or tiny
        value *= upper * lower
        if abs(upper * lower - 1) < 1e-15:
            break
    return 1 / value
