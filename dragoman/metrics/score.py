"""Scoring a corpus: every score with its signature, for each sentence and for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.metrics.instance import Instance
from dragoman.metrics.latency import LATENCY, LatencyMetric
from dragoman.metrics.quality import QUALITY, QualityMetric
from dragoman.metrics.ragged import Floats, Ints
from dragoman.metrics.timings import Rules, Timings, aware_timings, plain_timings

AWARE = "_CA"  # what a metric's name ends in when its times include computation
METRICS = (
    *QUALITY,
    *LATENCY,
    *(name + AWARE for name, metric in LATENCY.items() if metric.aware),
)
UNITS = {"speech": "ms", "text": "words"}
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Score:
    """One metric over a corpus. What is undefined is NaN."""

    name: str
    value: float
    sentences: Floats  # [sentences of the corpus]
    signature: str
    unit: str = ""
    interval: tuple[float, float] | None = None  # of 95 % confidence

    @property
    def scored(self) -> int:
        """How many sentences have a value."""
        return int(np.count_nonzero(~np.isnan(self.sentences)))

    def __str__(self) -> str:
        if np.isnan(self.value):
            return f"{self.signature} = undefined"
        interval = "" if self.interval is None else "[{:.2f}, {:.2f}]".format(*self.interval)
        return " ".join(filter(None, (f"{self.signature} = {self.value:.2f}", self.unit, interval)))


@dataclass(frozen=True, slots=True)
class Report:
    """All scores of a corpus, and the sentences that could not be scored in full."""

    instances: Sequence[Instance]
    scores: dict[str, Score]
    problems: dict[str, list[int]]  # what is wrong, and the indices of the sentences

    def to_dict(self) -> dict[str, object]:
        """The report as JSON shows it; undefined values become null."""
        names = ["index", *self.scores]
        columns = [score.sentences.tolist() for score in self.scores.values()]
        indices = [instance.index for instance in self.instances]
        rows = zip(indices, *columns, strict=True)
        return {
            "scores": {name: score.value for name, score in self.scores.items()},
            "sentences": [dict(zip(names, row, strict=True)) for row in rows],
            "signature": {name: score.signature for name, score in self.scores.items()},
            "intervals": {name: s.interval for name, s in self.scores.items() if s.interval},
            "problems": self.problems,
        }


def score_corpus(
    instances: Sequence[Instance],
    rules: Rules | None = None,
    metrics: Iterable[str] = METRICS,
    tokenizer: str = "13a",
    *,
    intervals: bool = False,
) -> Report:
    """Score a corpus by the metrics named; `intervals` adds 95 % confidence to each."""
    rules = rules or Rules()
    names = list(metrics)
    for name in names:
        if name not in METRICS:
            raise DragomanError(f"There is no metric {name}; there are {', '.join(METRICS)}.")
    quality = _quality_scores(instances, names, tokenizer, rules, intervals)
    latency, problems = _latency_scores(instances, names, rules, intervals)
    scores = quality | latency
    return Report(
        instances,
        {name: scores[name] for name in names},
        _problems(instances, quality=bool(quality)) | problems,
    )


def _latency_scores(
    instances: Sequence[Instance], names: Sequence[str], rules: Rules, intervals: bool
) -> tuple[dict[str, Score], dict[str, list[int]]]:
    """The latency scores, and the sentences without computation times if these are wanted."""
    scores: dict[str, Score] = {}
    problems: dict[str, list[int]] = {}
    plain = [name for name in names if name in LATENCY]
    aware = [name for name in names if name.endswith(AWARE)]
    if plain:
        timings = plain_timings(instances, rules)
        for name in plain:
            scores[name] = _latency_score(name, LATENCY[name], timings, len(instances), intervals)
    if aware:
        timings = aware_timings(instances, rules)
        for name in aware:
            metric = LATENCY[name.removesuffix(AWARE)]
            scores[name] = _latency_score(name, metric, timings, len(instances), intervals)
        timed = set(timings.rows.tolist())
        untimed = [i.index for row, i in enumerate(instances) if len(i.delays) and row not in timed]
        if untimed:
            problems["no computation times that fit the delays"] = untimed
    return scores, problems


def _latency_score(
    name: str, metric: LatencyMetric, timings: Timings, size: int, intervals: bool
) -> Score:
    values = metric.compute(timings) if len(timings.rows) else np.zeros(0)
    sentences = np.full(size, np.nan)
    sentences[timings.rows] = values
    weights = np.ones(len(values))
    if metric.weight == "source" and timings.rules.compat != "simuleval":
        weights = timings.source_lengths
    elif metric.weight == "units":
        weights = timings.shape.lengths.astype(float)
    known = ~np.isnan(values)
    value = float(np.average(values[known], weights=weights[known])) if known.any() else np.nan
    return Score(
        name,
        value,
        sentences,
        _signature(name, timings),
        UNITS[timings.rules.source] if metric.measure == "time" else "",
        _interval_of_mean(values[known]) if intervals and metric.weight is None else None,
    )


def _signature(name: str, timings: Timings) -> str:
    rules = timings.rules
    parts = [name, f"unit:{rules.unit}", f"len:{rules.length}", f"src:{rules.source}"]
    if timings.aware:
        parts.append(f"ca:{rules.computation}")
    return "|".join([*parts, f"compat:{rules.compat or 'no'}", f"version:{__version__}"])


def _interval_of_mean(values: Floats) -> tuple[float, float] | None:
    """The mean plus and minus 1.96 standard errors."""
    if len(values) < 2:
        return None
    error = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5
    return float(values.mean()) - error, float(values.mean()) + error


def _quality_scores(
    instances: Sequence[Instance],
    names: Sequence[str],
    tokenizer: str,
    rules: Rules,
    intervals: bool,
) -> dict[str, Score]:
    """Quality of the sentences that have a reference and whose output is text."""
    rows = [row for row, i in enumerate(instances) if i.reference is not None and not i.says_speech]
    hypotheses = [instances[row].prediction for row in rows]
    references = [instances[row].reference or "" for row in rows]
    scores: dict[str, Score] = {}
    for name in names:
        if name not in QUALITY:
            continue
        metric = QUALITY[name](tokenizer)
        sentences = np.full(len(instances), np.nan)
        value, interval = np.nan, None
        if rows:
            statistics = metric.statistics(hypotheses, references)
            sentences[rows] = metric.scores(statistics)
            value = float(metric.scores(statistics.sum(axis=0, keepdims=True))[0])
            interval = _bootstrap(metric, statistics) if intervals else None
        if name == "WER" and rules.compat == "simuleval":
            value, sentences = _simuleval_wer(value, sentences, references, rows)
        signature = f"{name}|{metric.signature()}"
        scores[name] = Score(name, value, sentences, signature, interval=interval)
    return scores


def _simuleval_wer(
    value: float, sentences: Floats, references: Sequence[str], rows: Sequence[int]
) -> tuple[float, Floats]:
    """SimulEval's WER is 0 for an empty reference, and for a corpus that begins with one."""
    empty = [row for row, text in zip(rows, references, strict=True) if not text.split()]
    sentences[empty] = 0.0
    return (0.0 if references and not references[0].split() else value), sentences


def _bootstrap(metric: QualityMetric, statistics: Ints) -> tuple[float, float]:
    """The middle 95 % of the scores of corpora drawn, with replacement, from this one."""
    random = np.random.default_rng(12345)
    size, counted = len(statistics), statistics.astype(float)
    draws = np.stack(
        [
            np.bincount(random.integers(0, size, size), minlength=size) @ counted
            for _ in range(RESAMPLES)
        ]
    )
    low, high = np.quantile(metric.scores(draws), (0.025, 0.975))
    return float(low), float(high)


def _problems(instances: Sequence[Instance], *, quality: bool) -> dict[str, list[int]]:
    """Sentences that cannot be scored in full, by what is wrong with them."""
    problems = {
        "nothing said": [i.index for i in instances if not len(i.delays)],
        "a source of no length": [i.index for i in instances if not i.source_length],
    }
    if quality:
        problems["no reference"] = [i.index for i in instances if i.reference is None]
        problems["speech output, whose words are not known"] = [
            i.index for i in instances if i.says_speech
        ]
    return {what: indices for what, indices in problems.items() if indices}
