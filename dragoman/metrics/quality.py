"""Quality metrics: what was said against a reference, or against several.

As in sacreBLEU a metric turns sentences into statistics, and statistics into a score. Statistics
of sentences add up to those of a corpus; so the same few lines score one sentence, a corpus, or
a thousand resampled corpora. Scores and signatures are sacreBLEU's; only the counting is ours,
since it is most of the time. Of sentences with several references sacreBLEU itself counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any, Protocol

import numpy as np

from dragoman.metrics.instance import Unit
from dragoman.metrics.ngrams import ngram_totals, shared_ngrams
from dragoman.metrics.ragged import Floats, Ints
from dragoman.metrics.tokenize import tokenizer_signature, words_of

MANY_WORDS = 4000
_CUT: dict[Unit, str] = {"word": "split", "char": "char"}  # as signatures call it
Numbers = Floats | Ints  # counts, or sums of counts that were weighted


@dataclass(frozen=True)
class Pairs:
    """What was said, sentence by sentence, and what should have been."""

    hypotheses: Sequence[str]
    references: Sequence[str]  # the first of each
    several: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """All references of the pairs that have more than one, by the number of the pair."""

    @property
    def nrefs(self) -> str:
        """How many references a sentence has, as sacreBLEU's signatures tell it."""
        counts = {len(texts) for texts in self.several.values()}
        if len(self.several) < len(self.hypotheses) or not counts:
            counts.add(1)
        return str(counts.pop()) if len(counts) == 1 else "var"

    @cached_property
    def words(self) -> list[tuple[list[str], list[str]]]:
        """Both texts of each pair, cut at white space."""
        pairs = zip(self.hypotheses, self.references, strict=True)
        return [(hypothesis.split(), reference.split()) for hypothesis, reference in pairs]

    def units(self, unit: Unit) -> Sequence[tuple[Sequence[str], Sequence[str]]]:
        """Both texts of each pair as words, or as characters without the white space."""
        if unit == "word":
            return self.words
        return [("".join(spoken), "".join(wanted)) for spoken, wanted in self.words]

    def against(self, texts: Sequence[str], row: int) -> Pairs:
        """What was said in one pair, against each of these texts."""
        return Pairs([self.hypotheses[row]] * len(texts), texts)


class QualityMetric(Protocol):
    """Sentences to statistics to scores."""

    def statistics(self, pairs: Pairs) -> Numbers:
        """What is counted in each sentence. [sentences, numbers]"""
        ...

    def scores(self, statistics: Numbers) -> Floats:
        """The score of each row of statistics, NaN where it is undefined."""
        ...

    def signature(self, nrefs: str = "1") -> str:
        """How the score was computed, against so many references each."""
        ...


@dataclass(frozen=True, slots=True)
class Bleu:
    """BLEU with sacreBLEU's defaults: four orders, exponential smoothing."""

    tokenizer: str = "13a"
    ORDER = 4

    def statistics(self, pairs: Pairs) -> Ints:
        """Both lengths, then matched n-grams, then n-grams of the hypothesis."""
        spoken = words_of(pairs.hypotheses, self.tokenizer)
        wanted = words_of(pairs.references, self.tokenizer)
        words = list(zip(spoken, wanted, strict=True))
        lengths = np.array([len(text) for pair in words for text in pair], dtype=np.int64)
        matched = shared_ngrams(_number_words(words), lengths, self.ORDER)
        totals = ngram_totals(lengths[0::2], self.ORDER)
        counted = np.column_stack((lengths[0::2], lengths[1::2], matched, totals))
        if pairs.several:
            from sacrebleu.metrics.bleu import BLEU

            counted[list(pairs.several)] = _counted_by(BLEU(tokenize=self.tokenizer), pairs)
        return counted

    def scores(self, statistics: Numbers) -> Floats:
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

    def signature(self, nrefs: str = "1") -> str:
        """What sacreBLEU itself would print."""
        tokenizer = tokenizer_signature(self.tokenizer)
        return f"nrefs:{nrefs}|case:mixed|eff:no|tok:{tokenizer}|smooth:exp|version:{_sacrebleu()}"


@dataclass(frozen=True, slots=True)
class Chrf:
    """chrF with sacreBLEU's defaults: character n-grams up to six, recall counts double."""

    ORDER = 6
    BETA = 2

    def statistics(self, pairs: Pairs) -> Ints:
        """For each order the n-grams of the hypothesis, of the reference, and the matched."""
        texts = ["".join(words) for pair in pairs.words for words in pair]
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        try:
            matched = shared_ngrams(_number_characters("".join(texts)), lengths, self.ORDER)
        except OverflowError:  # a talk in an enormous alphabet: sacreBLEU counts without limits
            return self._slow_statistics(pairs)
        spoken = ngram_totals(lengths[0::2], self.ORDER)
        wanted = ngram_totals(lengths[1::2], self.ORDER)
        spoken[wanted == 0] = 0  # as sacreBLEU: no n-grams wanted, none counted
        counted = np.stack((spoken, wanted, matched), axis=2).reshape(-1, 3 * self.ORDER)
        if pairs.several:
            from sacrebleu.metrics.chrf import CHRF

            counted[list(pairs.several)] = _counted_by(CHRF(), pairs)
        return counted

    def _slow_statistics(self, pairs: Pairs) -> Ints:
        from sacrebleu.metrics.chrf import CHRF

        alone = {row: [text] for row, text in enumerate(pairs.references)}
        return _counted_by(CHRF(), replace(pairs, several={**alone, **pairs.several}))

    def scores(self, statistics: Numbers) -> Floats:
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

    def signature(self, nrefs: str = "1") -> str:
        """What sacreBLEU itself would print."""
        return f"nrefs:{nrefs}|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{_sacrebleu()}"


@dataclass(frozen=True, slots=True)
class Wer:
    """Word error rate: edits per 100 words of the reference, on the words as they stand.

    Of characters where the language has no spaces between words. Of several references, as in TER:
    the fewest edits, per word of their mean length.
    """

    unit: Unit = "word"

    def statistics(self, pairs: Pairs) -> Numbers:
        """Edits and words of the reference."""
        from rapidfuzz.distance.Levenshtein import distance

        rows = [(distance(a, b), len(b)) for a, b in pairs.units(self.unit)]
        counted = np.array(rows, dtype=np.int64).reshape(-1, 2)
        if not pairs.several:
            return counted
        best = counted.astype(float)
        for row, texts in pairs.several.items():
            own = self.statistics(pairs.against(texts, row))
            best[row] = own[:, 0].min(), own[:, 1].mean()
        return best

    def scores(self, statistics: Numbers) -> Floats:
        edits, words = statistics[:, 0], statistics[:, 1]
        unknown = np.full(len(words), np.nan)
        rates: Floats = np.divide(100 * edits, words, out=unknown, where=words > 0)
        return rates

    def signature(self, nrefs: str = "1") -> str:
        several = "" if nrefs == "1" else f"nrefs:{nrefs}|"
        return f"{several}tok:{_CUT[self.unit]}|case:mixed|punct:kept"


@dataclass(frozen=True, slots=True)
class LengthDifference:
    """How many words more than the reference were said, on average; negative: fewer.

    Characters where the language has no spaces between words.
    """

    unit: Unit = "word"

    def statistics(self, pairs: Pairs) -> Ints:
        """Words said, words of the reference, and one sentence."""
        rows = [(len(a), len(b), 1) for a, b in pairs.units(self.unit)]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    def scores(self, statistics: Numbers) -> Floats:
        spoken, wanted, sentences = statistics.T
        differences: Floats = (spoken - wanted) / np.maximum(sentences, 1)
        return differences

    def signature(self, nrefs: str = "1") -> str:
        return f"tok:{_CUT[self.unit]}"  # of several references the first


QUALITY: dict[str, Callable[[str, Unit], QualityMetric]] = {
    "BLEU": lambda tokenizer, unit: Bleu(tokenizer),
    "chrF": lambda tokenizer, unit: Chrf(),
    "WER": lambda tokenizer, unit: Wer(unit),
    "LengthDiff": lambda tokenizer, unit: LengthDifference(unit),
}
"""Each quality metric, given BLEU's tokenizer and the unit that is counted."""


def _counted_by(metric: Any, pairs: Pairs) -> Ints:
    """What a metric of sacreBLEU's counts in the pairs that have several references."""
    most = max(map(len, pairs.several.values()))
    padded = [[*texts, *[None] * (most - len(texts))] for texts in pairs.several.values()]
    spoken = [pairs.hypotheses[row] for row in pairs.several]
    metric._force = True  # nobody here wants to be told that a text may be tokenised
    rows = metric._extract_corpus_statistics(spoken, list(zip(*padded, strict=True)))
    return np.array(rows, dtype=np.int64)


def _number_words(pairs: Sequence[tuple[list[str], list[str]]]) -> Ints:
    """The words of all texts as numbers from 1, anew when there are many: small numbers sort fast.

    Only the two texts of a pair are ever compared.
    """
    numbers: list[int] = []
    known: dict[str, int] = defaultdict(count(1).__next__)
    for spoken, wanted in pairs:
        if len(known) > MANY_WORDS:
            known = defaultdict(count(1).__next__)
        numbers.extend(map(known.__getitem__, spoken))
        numbers.extend(map(known.__getitem__, wanted))
    return np.array(numbers, dtype=np.int64)


def _number_characters(text: str) -> Ints:
    """The characters as numbers from 1 in the order of their code points."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    used = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int64)
    used[codes] = 1
    return np.cumsum(used)[codes]


def _sacrebleu() -> str:
    """The version of sacreBLEU whose scores these are, without importing it."""
    from importlib.metadata import version

    return version("sacrebleu")
