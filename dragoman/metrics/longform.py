"""Latency and quality of systems that interpret whole talks.

The output of a talk is cut into pieces that belong to the reference's sentences (`resegment`);
then every sentence is scored as if it had been interpreted alone, its times counted from its
beginning in the recording. A word may so be early: its time is then negative, and counts.

- LongAL, LongLAAL, LongDAL, LongAP: AL, LAAL, DAL and AP on the pieces (OmniSTEval).
- LongYAAL: LAAL over all words said before the recording ends (arXiv:2509.17349).
- StreamLAAL: LAAL on pieces cut with the fewest word errors (Papi et al. 2024).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.metrics.doubts import doubts_of_talks
from dragoman.metrics.instance import Instance
from dragoman.metrics.latency import LATENCY, lagging, mean_lag
from dragoman.metrics.pieces import LongRules, Piece, cut_talks, talk_clocks
from dragoman.metrics.quality import QUALITY
from dragoman.metrics.ragged import Floats, flatten
from dragoman.metrics.resegment import Aligner
from dragoman.metrics.score import AWARE, Report, Score, score_corpus
from dragoman.metrics.segments import Segment, Talk, match_talks
from dragoman.metrics.significance import mean_measure
from dragoman.metrics.streamlaal import fbk_sentences, simulstream_length, simulstream_sentences
from dragoman.metrics.timings import Rules, Timings, plain_timings

LATENCIES = ("LongAL", "LongLAAL", "LongDAL", "LongAP", "LongYAAL", "StreamLAAL")
LONG_METRICS = (*QUALITY, *LATENCIES, *(name + AWARE for name in LATENCIES))


def score_longform(
    instances: Sequence[Instance],
    segments: Sequence[Segment],
    rules: Rules | None = None,
    long_rules: LongRules | None = None,
    metrics: Iterable[str] = LONG_METRICS,
    tokenizer: str = "13a",
) -> Report:
    """Score the outputs of whole talks against reference segments."""
    rules, names = rules or Rules(), list(metrics)
    for name in names:
        if name not in LONG_METRICS:
            raise DragomanError(
                f"There is no long-form metric {name}; there are {', '.join(LONG_METRICS)}."
            )
    if rules.compat == "simuleval":
        raise DragomanError("SimulEval has no long form to be compatible with: take omnisteval.")
    corpus = Corpus(match_talks(instances, segments), rules, long_rules or LongRules())
    report = score_corpus(corpus.sentences, rules, [n for n in names if n in QUALITY], tokenizer)
    quality = dict(report.scores)
    if rules.compat == "omnisteval":
        quality |= _nfkc_scores(corpus.sentences, rules, names, tokenizer)
    scores = {
        name: replace(score, signature=f"{score.signature}|{corpus.long_rules.alignment('soft')}")
        for name, score in quality.items()
    }
    latencies = [name for name in names if name not in QUALITY]
    scores |= {name: corpus.score(name) for name in latencies}
    doubts = doubts_of_talks(corpus.talks, rules, corpus.long_rules) if latencies else {}
    return replace(
        report,
        scores={name: scores[name] for name in [*names, *scores]},
        problems=report.problems | doubts,
    )


def _nfkc_scores(
    sentences: Sequence[Instance], rules: Rules, names: Sequence[str], tokenizer: str
) -> dict[str, Score]:
    """OmniSTEval adds quality without differences of width, where the texts have such."""
    wanted = [name for name in ("BLEU", "chrF") if name in names]
    texts = [text for s in sentences for text in (s.prediction, s.reference or "")]
    if not wanted or all(unicodedata.is_normalized("NFKC", text) for text in texts):
        return {}
    folded = [
        replace(
            sentence,
            prediction=unicodedata.normalize("NFKC", sentence.prediction),
            reference=unicodedata.normalize("NFKC", sentence.reference or ""),
        )
        for sentence in sentences
    ]
    scores = score_corpus(folded, rules, wanted, tokenizer).scores
    return {
        f"{name}_NFKC": replace(
            score,
            measure=replace(score.measure, name=f"{name}_NFKC"),
            signature=f"{score.signature}|nfkc:yes",
        )
        for name, score in scores.items()
    }


@dataclass
class Corpus:
    """Talks and their pieces, each way of cutting done when it is first needed."""

    talks: Sequence[Talk]
    rules: Rules
    long_rules: LongRules

    def __post_init__(self) -> None:
        self._cuts: dict[Aligner, list[list[Piece]]] = {}

    @cached_property
    def sentences(self) -> list[Instance]:
        """The pieces as sentences, in the order of the segments."""
        return [piece.sentence(self.rules.unit) for piece in in_order(self.cut("soft"))]

    @cached_property
    def stream_sentences(self) -> list[Instance]:
        """The pieces as StreamLAAL's tool sees them, in the order of the segments."""
        if self.long_rules.stream == "fbk":
            sentences = fbk_sentences(self.cut("mwer"), self.talks, self.rules)
        else:
            sentences = simulstream_sentences(self.cut("mwer"))
        return sorted(sentences, key=lambda sentence: sentence.index)

    def cut(self, aligner: Aligner) -> list[list[Piece]]:
        """The pieces of every talk by the metric's own aligner, or by the one asked for."""
        aligner = self.long_rules.aligner or aligner
        if aligner not in self._cuts:
            clocks = talk_clocks(self.talks, self.rules)
            self._cuts[aligner] = cut_talks(
                self.talks, clocks, self.rules, self.long_rules, aligner
            )
        return self._cuts[aligner]

    def score(self, name: str) -> Score:
        """One latency, over all sentences and for each."""
        aware = name.endswith(AWARE)
        plain_name = name.removesuffix(AWARE)
        values = LATENCY_OF[plain_name](self, aware)
        measure = mean_measure(name, values)
        unit = "" if plain_name == "LongAP" else "ms"
        return Score(measure, measure.value, values, self._signature(name, aware), unit)

    def _signature(self, name: str, aware: bool) -> str:
        stream = name.startswith("Stream")
        parts = [name, f"unit:{self.rules.unit}", f"len:{self.rules.length}"]
        parts.append(self.long_rules.alignment("mwer" if stream else "soft"))
        if self.long_rules.from_first_segment:
            parts.append("zero:first-segment")
        if aware:
            parts.append(f"ca:{self.rules.computation}")
        compat = self.long_rules.stream if stream else self.rules.compat or "no"
        return "|".join([*parts, f"compat:{compat}", f"version:{__version__}"])


def in_order(talks: Sequence[Sequence[Piece]]) -> list[Piece]:
    """All pieces in the order of the segments."""
    return sorted((piece for talk in talks for piece in talk), key=lambda p: p.segment.index)


# --- the metrics, each one value per sentence and NaN where undefined -----------------------------


def _long(metric: str) -> Callable[[Corpus, bool], Floats]:
    """A metric of single sentences, on the pieces."""

    def values(corpus: Corpus, aware: bool) -> Floats:
        timings = _timings(corpus.sentences, corpus.rules, aware)
        return _spread(LATENCY[metric].compute(timings), timings, len(corpus.sentences))

    return values


def _long_yaal(corpus: Corpus, aware: bool) -> Floats:
    """LAAL's lag over the units said before the recording ends, however long the sentence is."""
    timings = _timings(corpus.sentences, corpus.rules, aware)
    shape = timings.shape
    left = np.array([piece.time_left for piece in in_order(corpus.cut("soft"))])[timings.rows]
    counted = shape.first_where(timings.times >= shape.spread(left))
    values = mean_lag(timings, np.maximum(shape.lengths, timings.target_lengths), counted)
    return _spread(values, timings, len(corpus.sentences))


def _stream_laal(corpus: Corpus, aware: bool) -> Floats:
    sentences = corpus.stream_sentences
    timings = _timings(sentences, corpus.rules, aware)
    if corpus.long_rules.stream == "fbk":
        return _spread(LATENCY["LAAL"].compute(timings), timings, len(sentences))
    references = [simulstream_length(s.reference or "", corpus.rules.unit) for s in sentences]
    lengths = np.maximum(timings.shape.lengths, np.array(references, dtype=float)[timings.rows])
    return _spread(1000 * lagging(timings, lengths), timings, len(sentences))


def _timings(sentences: Sequence[Instance], rules: Rules, aware: bool) -> Timings:
    """The sentences' times, by the clock that includes computation if `aware`."""
    if not aware:
        return plain_timings(sentences, rules)
    rows = [row for row, sentence in enumerate(sentences) if sentence.elapsed]
    chosen = [sentences[row] for row in rows]
    times = flatten([sentence.elapsed or () for sentence in chosen])
    plain = plain_timings(chosen, rules)
    return replace(plain, rows=np.array(rows, dtype=np.int64), times=times, aware=True)


def _spread(values: Floats, timings: Timings, size: int) -> Floats:
    """The values of the sentences that have times, NaN for the others."""
    spread = np.full(size, np.nan)
    spread[timings.rows] = values
    return spread


LATENCY_OF: dict[str, Callable[[Corpus, bool], Floats]] = {
    "LongAL": _long("AL"),
    "LongLAAL": _long("LAAL"),
    "LongDAL": _long("DAL"),
    "LongAP": _long("AP"),
    "LongYAAL": _long_yaal,
    "StreamLAAL": _stream_laal,
}
