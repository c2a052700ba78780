"""Scoring a corpus: every score with its signature, for each sentence and for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.metrics.doubts import NO_LENGTH, doubts
from dragoman.metrics.instance import Instance, Unit
from dragoman.metrics.latency import LATENCY
from dragoman.metrics.quality import QUALITY, Pairs
from dragoman.metrics.ragged import Bools, Floats
from dragoman.metrics.significance import Interval, Measure, pseudo_values, ratio_of_sums
from dragoman.metrics.timings import Rules, aware_timings, plain_timings

AWARE = "_CA"  # what a metric's name ends in when its times include computation
METRICS = (
    *QUALITY,
    *LATENCY,
    *(name + AWARE for name, metric in LATENCY.items() if metric.has_aware),
)
UNITS = {"speech": "ms", "text": "words"}
# What a score can be, where that is limited; a word error rate may be above 100.
POSSIBLE = {"BLEU": (0.0, 100.0), "chrF": (0.0, 100.0)}
POSSIBLE |= dict.fromkeys(("WER", "AP", "RTF", "Erasure", "NumChunks"), (0.0, np.inf))
BLOCK = 2048  # sentences timed at once: what fits a processor's cache is faster


@dataclass(frozen=True, slots=True)
class Score:
    """One metric over a corpus. What is undefined is NaN."""

    measure: Measure  # the sentences' statistics, to resample or compare
    value: float
    sentences: Floats  # [sentences of the corpus]
    signature: str
    unit: str = ""

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def scored(self) -> int:
        """How many sentences have a value."""
        return int(np.count_nonzero(~np.isnan(self.sentences)))

    def interval(self) -> Interval:
        """Where the score lies with 95 % confidence: its error to both sides, but nowhere that no
        score can be."""
        error = self.error()
        least, most = POSSIBLE.get(self.name, (-np.inf, np.inf))
        low, high = np.clip([self.value - error, self.value + error], least, most)
        return Interval(float(low), float(high))

    def error(self) -> float:
        """1.96 standard errors; NaN of fewer than two sentences.

        The errors are the jackknife's; for a mean these are the usual ones.
        """
        known = ~np.isnan(self.sentences)
        counted = self.measure.of(known)
        if len(counted.statistics) < 2:
            return np.nan
        shares = pseudo_values(counted)
        return 1.96 * float(shares.std(ddof=1)) / float(len(shares) ** 0.5)

    def __str__(self) -> str:
        if np.isnan(self.value):
            return f"{self.signature} = undefined"
        return f"{self.signature} = {self.value:z.2f} {self.unit}".rstrip()


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
            "problems": self.problems,
        }


def score_corpus(
    instances: Sequence[Instance],
    rules: Rules | None = None,
    metrics: Iterable[str] = METRICS,
    tokenizer: str = "13a",
) -> Report:
    """Score a corpus by the metrics named.

    `tokenizer_for(target)` is the tokenizer that BLEU wants for a language, and
    `find_language(target).unit` the unit of `rules` and `instances`.
    """
    rules = rules or Rules()
    names = list(dict.fromkeys(metrics))
    for name in names:
        if name not in METRICS:
            raise DragomanError(f"There is no metric {name}; there are {', '.join(METRICS)}.")
    quality = [name for name in names if name in QUALITY]
    latency = [name for name in names if name not in QUALITY]
    scores = _quality_scores(instances, quality, tokenizer, rules) if quality else {}
    problems = _problems(instances, quality=bool(quality), latency=bool(latency))
    if latency:
        table = _time_corpus(instances, latency, rules)
        scores |= {name: table.score(name, rules) for name in latency}
        if not table.timed.all():
            rows = np.flatnonzero(~table.timed).tolist()
            untimed = [instances[row].index for row in rows]
            problems["no computation times that fit the delays"] = untimed
        for what, rows in table.doubts.items():
            problems[what] = [instances[row].index for row in rows]
    return Report(instances, {name: scores[name] for name in names}, problems)


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """The latency of every sentence by every metric, NaN where undefined."""

    values: dict[str, Floats]  # [sentences]
    weights: dict[str, Floats]  # [sentences] what each value counts in the corpus
    timed: Bools  # [sentences] not known to lack computation times, where these are wanted
    doubts: dict[str, list[int]]  # what is doubtful about times, and in which sentences

    def score(self, name: str, rules: Rules) -> Score:
        """The corpus score, which is the weighted mean."""
        values, weights = self.values[name], self.weights[name]
        known = ~np.isnan(values)
        counted = np.where(known, weights, 0.0)
        sums = np.stack((np.where(known, values, 0.0) * counted, counted)).T
        measure = Measure(name, sums, ratio_of_sums, known)
        unit = UNITS[rules.source] if LATENCY[name.removesuffix(AWARE)].is_time else ""
        return Score(measure, measure.value, values, _signature(name, rules), unit)


def _time_corpus(instances: Sequence[Instance], names: Sequence[str], rules: Rules) -> LatencyTable:
    size = len(instances)
    values = {name: np.full(size, np.nan) for name in names}
    weights = {name: np.ones(size) for name in names}
    timed = np.ones(size, dtype=bool)
    doubted: dict[str, list[int]] = {}
    wants_aware = any(name.endswith(AWARE) for name in names)
    for begin in range(0, size, BLOCK):
        plain = plain_timings(instances[begin : begin + BLOCK], rules)
        aware = aware_timings(plain) if wants_aware else plain
        timed[begin + plain.rows] = False
        timed[begin + aware.rows] = True
        for what, doubtful in doubts(plain, aware if wants_aware else None).items():
            if doubtful.any():
                doubted.setdefault(what, []).extend((begin + plain.rows[doubtful]).tolist())
        for name in names:
            metric = LATENCY[name.removesuffix(AWARE)]
            timings = aware if name.endswith(AWARE) else plain
            if len(timings.rows):
                values[name][begin + timings.rows] = metric.compute(timings)
                if metric.weigh is not None:
                    weights[name][begin + timings.rows] = metric.weigh(timings)
    if "RTF" in names and rules.compat != "simuleval":
        _time_unsaid(instances, values["RTF"], weights["RTF"])
    return LatencyTable(values, weights, timed, doubted)


def _time_unsaid(instances: Sequence[Instance], factors: Floats, lengths: Floats) -> None:
    """Sentences of which nothing was said have no delays, but they took their time."""
    for row, instance in enumerate(instances):
        if not len(instance.delays) and instance.compute is not None and instance.source_length:
            factors[row] = instance.compute / instance.source_length
            lengths[row] = instance.source_length


def _signature(name: str, rules: Rules) -> str:
    parts = [name, f"unit:{rules.unit}", f"len:{rules.length}", f"src:{rules.source}"]
    if name.endswith(AWARE):
        parts.append(f"ca:{rules.computation}")
    return "|".join([*parts, f"compat:{rules.compat or 'no'}", f"version:{__version__}"])


def _quality_scores(
    instances: Sequence[Instance], names: Sequence[str], tokenizer: str, rules: Rules
) -> dict[str, Score]:
    """Quality of the sentences that have a reference and whose output is text."""
    rows = [row for row, i in enumerate(instances) if i.reference is not None and not i.says_speech]
    references = [instances[row].reference or "" for row in rows]
    every = [instances[row].references for row in rows]
    several = {place: texts for place, texts in enumerate(every) if len(texts) > 1}
    pairs = Pairs([instances[row].prediction for row in rows], references, several)
    unit: Unit = "word" if rules.compat == "simuleval" else rules.unit
    compared = np.zeros(len(instances), dtype=bool)
    compared[rows] = True
    scores: dict[str, Score] = {}
    for name in names:
        metric = QUALITY[name](tokenizer, unit)
        counted = metric.statistics(pairs)
        statistics = np.zeros((len(instances), counted.shape[1]))
        statistics[rows] = counted
        sentences = np.full(len(instances), np.nan)
        sentences[rows] = metric.scores(counted)
        measure = Measure(name, statistics, metric.scores, compared)
        value = measure.value if rows else np.nan
        if name == "WER" and rules.compat == "simuleval":
            # SimulEval's is 0 for an empty reference, and for a corpus that begins with one.
            empty = [row for row, text in zip(rows, references, strict=True) if not text.split()]
            sentences[empty] = 0.0
            value = 0.0 if empty and empty[0] == rows[0] else value
        scores[name] = Score(measure, value, sentences, f"{name}|{metric.signature(pairs.nrefs)}")
    return scores


def _problems(
    instances: Sequence[Instance], *, quality: bool, latency: bool
) -> dict[str, list[int]]:
    """Sentences that cannot be scored in full, by what is wrong with them."""
    problems = {"nothing said": [i.index for i in instances if not len(i.delays)]}
    if latency:
        problems[NO_LENGTH] = [i.index for i in instances if not i.source_length]
    if quality:
        problems["no reference"] = [i.index for i in instances if i.reference is None]
        problems["an empty reference, against which every word is wrong"] = [
            i.index for i in instances if i.references and not any(map(str.split, i.references))
        ]
        problems["speech output, whose words are not known"] = [
            i.index for i in instances if i.says_speech
        ]
    return {what: indices for what, indices in problems.items() if indices}
