"""What a translator's tokens say of the words of its source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from dragoman.models.cascade.translator import Translation
from dragoman.models.guard import cut_loop
from dragoman.models.search import Found
from dragoman.models.words import Units, without_stop
from dragoman.text.units import SPACES

LONGER = 2.0  # a translation has at most so many times the units of its source,
SPARE = 10  # and so many more


def room_for(pieces: int, said: int) -> int:
    """How many tokens may follow what was said of a sentence of so many pieces."""
    return SPARE + int(LONGER * pieces) - said


def owners(pieces: Sequence[str], words: Sequence[str]) -> list[int]:
    """For each piece of a text, the word in whose letters its middle lies.

    A vocabulary may write some letters differently, so places are shares of the whole text.
    """
    sizes, ends = list(map(_letters, pieces)), list(accumulate(map(_letters, words)))
    total = max(1, sum(sizes))
    middles = (end - size / 2 for end, size in zip(accumulate(sizes), sizes, strict=True))
    places = (middle * ends[-1] / total for middle in middles)
    return [min(bisect_right(ends, place), len(words) - 1) for place in places]


@dataclass(frozen=True, slots=True)
class Owned:
    """What a translator read: the word of each piece, behind tokens that belong to none."""

    word_of: Sequence[int]
    words: int
    begin: int  # of the pieces


def over_words(
    found: Found, said: Sequence[int], owned: Owned, units: Units, *, closed: bool
) -> Translation:
    """A continuation as far as it can be trusted, its looks at pieces as looks at their words.

    A sentence that is not `closed` gets no full stop.
    """
    keep = cut_loop(said, found.tokens)
    ended = found.ended and keep == len(found.tokens)
    if ended and not closed:
        keep = without_stop(units, found.tokens)
    attention = np.zeros((keep, owned.words), np.float32)
    if keep:
        looks = np.stack(found.looks[:keep])[:, owned.begin : owned.begin + len(owned.word_of)]
        np.add.at(attention.T, list(owned.word_of), looks.T)
    return Translation(found.tokens[:keep], found.log_probs[:keep], attention, ended)


def nothing(said: Sequence[int], words: int) -> Translation:
    """Where there is nothing to translate, or too much was said already."""
    return Translation((), (), np.zeros((0, words), np.float32), bool(said))


def _letters(text: str) -> int:
    return len(text) - sum(text.count(space) for space in SPACES)
