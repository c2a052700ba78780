"""How alike words are: by the letters they share."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.instance import Unit

Floats = NDArray[np.float64]
Texts = Sequence[tuple[Sequence[str], Sequence[str]]]  # tokens of a reference and of an output

# A lone one of these is like no word.
PUNCTUATION = frozenset(".!?,;:-()。！？，；：—ー（）")


def similarity(one: str, other: str, unit: Unit) -> float:
    """The share of letters that two words have in common; for characters whether they are equal.

    Punctuation and anything else are infinitely unlike.
    """
    if (one in PUNCTUATION) != (other in PUNCTUATION):
        return -inf
    if unit == "char":
        return float(one == other)
    common = len({*one} & {*other})
    return common / max(len({*one, *other}), 1)


class Similarities:
    """`similarity` of all reference tokens with all output tokens, for several texts at once.

    Texts are padded to the longest with any token; nobody asks for what is beyond their end.
    """

    def __init__(self, texts: Texts, unit: Unit) -> None:
        every = [token for text in texts for tokens in text for token in tokens]
        distinct = list(dict.fromkeys(every))
        codes = {token: code for code, token in enumerate(distinct)}
        rows = _padded([[codes[token] for token in reference] for reference, _ in texts])
        columns = _padded([[codes[token] for token in output] for _, output in texts])
        letters = _letter_sets(distinct)
        sizes = np.bitwise_count(letters).sum(axis=1, dtype=np.intp)
        marks = np.array([token in PUNCTUATION for token in distinct], dtype=bool)
        self._unit = unit
        self._numbers = rows, columns  # [rows, texts], [columns, texts], and so on
        self._sizes = sizes[rows], sizes[columns]
        self._letters = [(group[rows], group[columns]) for group in letters.T]
        self._marks = (marks[rows], marks[columns]) if marks.any() else None
        # The share of letters in common, by how many these are and how many both tokens have.
        common, total = np.indices((sizes.max() + 1, 2 * sizes.max() + 1))
        self._shares: Floats = common / np.maximum(total - common, 1)

    def __call__(self, begin: int, end: int) -> Floats:
        """Those of the reference tokens from `begin` to `end`. [end - begin, columns, texts]"""
        rows = slice(begin, end), None
        alike: Floats
        if self._unit == "char":
            numbers, others = self._numbers
            alike = (numbers[rows] == others).astype(float)
        else:
            sizes, others = self._sizes
            place = sizes[rows] + others
            for letters, other in self._letters:
                common = np.bitwise_count(letters[rows] & other)
                place += common.astype(np.intp) * self._shares.shape[1]
            alike = self._shares.ravel().take(place, mode="clip")  # faster, and all are inside
        if self._marks is not None:
            marks, others = self._marks
            alike[marks[rows] != others] = -inf
        return alike


def _padded(texts: Sequence[Sequence[int]]) -> NDArray[np.intp]:
    """Numbers of several texts side by side. [longest, texts]"""
    table = np.zeros((max(map(len, texts)), len(texts)), dtype=np.intp)
    for column, numbers in enumerate(texts):
        table[: len(numbers), column] = numbers
    return table


def _letter_sets(tokens: Sequence[str]) -> NDArray[np.uint64]:
    """The letters of each token as bits, 64 letters to a number. [tokens, numbers]"""
    text = "".join(tokens).encode("utf-32-le", "surrogatepass")
    alphabet, letter = np.unique(np.frombuffer(text, dtype=np.uint32), return_inverse=True)
    token = np.repeat(np.arange(len(tokens)), [len(token) for token in tokens])
    sets = np.zeros((len(tokens), len(alphabet) // 64 + 1), dtype=np.uint64)
    np.bitwise_or.at(sets, (token, letter // 64), np.uint64(1) << (letter % 64).astype(np.uint64))
    return sets
