"""Which word of a text each of its pieces belongs to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from dragoman.text.units import SPACES


def owners(pieces: Sequence[str], words: Sequence[str]) -> list[int]:
    """For each piece, the word in whose letters its middle lies.

    A vocabulary may write some letters differently, so places are shares of the whole text.
    """
    sizes, ends = list(map(_letters, pieces)), list(accumulate(map(_letters, words)))
    total = max(1, sum(sizes))
    middles = (end - size / 2 for end, size in zip(accumulate(sizes), sizes, strict=True))
    places = (middle * ends[-1] / total for middle in middles)
    return [min(bisect_right(ends, place), len(words) - 1) for place in places]


def _letters(text: str) -> int:
    return len(text) - sum(text.count(space) for space in SPACES)
