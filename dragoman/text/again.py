"""Where a text goes on that was begun elsewhere: two versions of it laid side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.text.plain import plain

UNLIKE = 1.6
"""What it costs to take one word for another that has nothing in common with it. To leave one out
costs 1; two words are taken for versions of each other if most of their letters agree."""


def count_letters(text: str) -> int:
    """Characters that are no spaces: the same however a text is cut into words."""
    return sum(map(len, text.split()))


GUESSES, GUESS = 2, 0.9
"""So many of the last words of a version that has not come as far may be guesses, which say nothing
of what is known; to think so of one costs less than to leave it out."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many of the words that are known, and how many of the others, say the same."""

    known: int
    words: int


def overlap(known: Sequence[str], words: Sequence[str]) -> Overlap:
    """Which beginning of `words` says what `known` says.

    All of one of the two is used up: where `words` is the shorter version, the rest of what is
    known is still to come. Then its last words, made of sound that has just been heard, may be
    guesses, and are left out.
    """
    from rapidfuzz.distance.Levenshtein import normalized_distance

    left, right = [plain(word) for word in known], [plain(word) for word in words]
    row = [float(place) for place in range(len(right) + 1)]
    ends = [(row[-1], 0, len(right))]  # cost, and how much of both is used up
    guesses = range(1, min(GUESSES, len(right)) + 1)
    for used, one in enumerate(left, 1):
        above, row = row, [float(used)]
        for place, other in enumerate(right):
            alike = above[place] + UNLIKE * normalized_distance(one, other)
            row.append(min(alike, above[place + 1] + 1, row[place] + 1))
        ends.append((row[-1], used, len(right)))
        if used < len(left):
            ends += [(row[-1 - few] + GUESS * few, used, len(right) - few) for few in guesses]
    ends += [(cost, len(left), place) for place, cost in enumerate(row)]
    _, used, place = min(ends, key=lambda end: (end[0], -end[1], -end[2]))
    return Overlap(used, place)
