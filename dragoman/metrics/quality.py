"""Quality metrics: what was said against a reference.

As in sacreBLEU a metric turns sentences into statistics, and statistics into a score. Statistics
of sentences add up to those of a corpus; so the same few lines score one sentence, a corpus, or
a thousand resampled corpora. Scores and signatures are sacreBLEU's; only the counting is ours,
since it is most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dragoman.metrics.ngrams import ngram_totals, shared_ngrams
from dragoman.metrics.ragged import Floats, Ints
from dragoman.metrics.tokenize import words_of


class QualityMetric(Protocol):
    """Sentences to statistics to scores."""

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Ints:
        """What is counted in each sentence. [sentences, numbers]"""
        ...

    def scores(self, statistics: Ints) -> Floats:
        """The score of each row of statistics, NaN where it is undefined."""
        ...

    def signature(self) -> str:
        """How the score was computed."""
        ...


@dataclass(frozen=True, slots=True)
class Bleu:
    """BLEU with sacreBLEU's defaults: four orders, exponential smoothing."""

    tokenizer: str = "13a"
    ORDER = 4

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Ints:
        """Both lengths, then matched n-grams, then n-grams of the hypothesis."""
        pairs = list(
            zip(
                words_of(hypotheses, self.tokenizer),
                words_of(references, self.tokenizer),
                strict=True,
            )
        )
        lengths = np.array([len(words) for pair in pairs for words in pair], dtype=np.int64)
        matched = shared_ngrams(_number_words(pairs), lengths, self.ORDER)
        totals = ngram_totals(lengths[0::2], self.ORDER)
        return np.column_stack((lengths[0::2], lengths[1::2], matched, totals))

    def scores(self, statistics: Ints) -> Floats:
        spoken, wanted = statistics[:, 0], statistics[:, 1]
        matched, totals = statistics[:, 2 : 2 + self.ORDER], statistics[:, 2 + self.ORDER :]
        # An order without a match counts as half a match; the next such order as a quarter.
        halvings = np.cumsum((matched == 0) & (totals > 0), axis=1)
        hits = np.where(matched > 0, matched, 0.5**halvings)
        shortage = np.minimum(1 - wanted / np.maximum(spoken, 1), 0)
        logs = np.log(hits / np.maximum(totals, 1)).mean(axis=1)
        # Without any match, or too short for an order: 0 (it is no sentence-level BLEU).
        scored = (matched.max(axis=1) > 0) & (totals.min(axis=1) > 0)
        return np.where(scored, 100 * np.exp(shortage + logs), 0.0)

    def signature(self) -> str:
        from sacrebleu.metrics.bleu import BLEU

        return _sacrebleu_signature(BLEU(tokenize=self.tokenizer))


@dataclass(frozen=True, slots=True)
class Chrf:
    """chrF with sacreBLEU's defaults: character n-grams up to six, recall counts double."""

    ORDER = 6
    BETA = 2

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Ints:
        """For each order the n-grams of the hypothesis, of the reference, and the matched."""
        texts = [
            "".join(text.split())
            for pair in zip(hypotheses, references, strict=True)
            for text in pair
        ]
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        try:
            matched = shared_ngrams(_number_characters("".join(texts)), lengths, self.ORDER)
        except OverflowError:  # a talk in an enormous alphabet: sacreBLEU counts without limits
            return self._slow_statistics(hypotheses, references)
        spoken = ngram_totals(lengths[0::2], self.ORDER)
        wanted = ngram_totals(lengths[1::2], self.ORDER)
        spoken[wanted == 0] = 0  # as sacreBLEU: no n-grams wanted, none counted
        return np.stack((spoken, wanted, matched), axis=2).reshape(len(spoken), -1)

    def _slow_statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Ints:
        from sacrebleu.metrics.chrf import CHRF

        chrf = CHRF()
        rows = [
            chrf._extract_corpus_statistics([hypothesis], [[reference]])[0]
            for hypothesis, reference in zip(hypotheses, references, strict=True)
        ]
        return np.array(rows, dtype=np.int64)

    def scores(self, statistics: Ints) -> Floats:
        spoken, wanted, matched = np.moveaxis(statistics.reshape(-1, self.ORDER, 3), 2, 0)
        used = (spoken > 0) & (wanted > 0)
        orders = np.maximum(used.sum(axis=1), 1)
        precision = (used * matched / np.maximum(spoken, 1)).sum(axis=1) / orders
        recall = (used * matched / np.maximum(wanted, 1)).sum(axis=1) / orders
        weighted = self.BETA**2 * precision + recall
        products = (1 + self.BETA**2) * precision * recall
        scores: Floats = np.divide(
            products, weighted, out=np.zeros(len(orders)), where=weighted > 0
        )
        return 100 * scores

    def signature(self) -> str:
        from sacrebleu.metrics.chrf import CHRF

        return _sacrebleu_signature(CHRF())


@dataclass(frozen=True, slots=True)
class Wer:
    """Word error rate: edits per 100 words of the reference, on the words as they stand."""

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Ints:
        """Edits and words of the reference."""
        from rapidfuzz.distance.Levenshtein import distance

        pairs = [(h.split(), r.split()) for h, r in zip(hypotheses, references, strict=True)]
        rows = [(distance(spoken, wanted), len(wanted)) for spoken, wanted in pairs]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    def scores(self, statistics: Ints) -> Floats:
        edits, words = statistics[:, 0], statistics[:, 1]
        unknown = np.full(len(words), np.nan)
        rates: Floats = np.divide(100 * edits, words, out=unknown, where=words > 0)
        return rates

    def signature(self) -> str:
        return "tok:split|case:mixed|punct:kept"


@dataclass(frozen=True, slots=True)
class LengthDifference:
    """How many words more than the reference were said, on average; negative: fewer."""

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Ints:
        """Words said, words of the reference, and one sentence."""
        pairs = zip(hypotheses, references, strict=True)
        rows = [(len(spoken.split()), len(wanted.split()), 1) for spoken, wanted in pairs]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    def scores(self, statistics: Ints) -> Floats:
        spoken, wanted, sentences = statistics.T
        differences: Floats = (spoken - wanted) / np.maximum(sentences, 1)
        return differences

    def signature(self) -> str:
        return "tok:split"


QUALITY: dict[str, Callable[[str], QualityMetric]] = {
    "BLEU": Bleu,
    "chrF": lambda tokenizer: Chrf(),
    "WER": lambda tokenizer: Wer(),
    "LengthDiff": lambda tokenizer: LengthDifference(),
}


def _number_words(pairs: Sequence[tuple[list[str], list[str]]]) -> Ints:
    """The words of both texts of each pair as numbers from 1, anew for every pair."""
    numbers: list[int] = []
    for spoken, wanted in pairs:
        known: dict[str, int] = {}
        numbers += [known.setdefault(word, len(known) + 1) for word in spoken]
        numbers += [known.setdefault(word, len(known) + 1) for word in wanted]
    return np.array(numbers, dtype=np.int64)


def _number_characters(text: str) -> Ints:
    """The characters as numbers from 1 in the order of their code points."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    used = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int64)
    used[codes] = 1
    return np.cumsum(used)[codes]


def _sacrebleu_signature(metric: object) -> str:
    metric.num_refs = 1  # type: ignore[attr-defined]
    return str(metric.get_signature())  # type: ignore[attr-defined]
