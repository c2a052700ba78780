"""BPE-dropout (Provilkov 2020): a text is cut into other units every time it is seen.

BPE cuts a word into characters and joins the best pair of neighbours again and again. With dropout
every pair is overlooked with probability p each time a best one is sought, so that now and then a
word stays in smaller units; the net learns what its units are made of. With p = 0 the units are
those of SentencePiece.

Texts come as ids, as they are kept, and chance comes from whoever asks: the same seed gives the
same units.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from dragoman.errors import DragomanError
from dragoman.models.exported.net import UNK
from dragoman.train.data.vocabulary import Pieces

SPACE = "▁"
ROOM = 4.0  # times p: how much longer nearly every text gets (1.18 on average at p = 0.1)


class BpeDropout:
    """Cuts ids of one vocabulary anew."""

    def __init__(self, pieces: Pieces):
        self.share = pieces.units.dropout
        self.pieces = [pieces.model.id_to_piece(number) for number in range(len(pieces))]
        self.suffix = pieces.units.suffix
        self.first = self._first_learned(pieces)
        # SentencePiece gives pieces in the order in which they were learned: lower is better.
        self.rank = {piece: n for n, piece in enumerate(self.pieces) if n >= self.first}

    def _first_learned(self, pieces: Pieces) -> int:
        """The first unit behind the special ones and the tags of languages, whose score is 0 as the
        best merge's is."""
        scores = [pieces.model.get_score(number) for number in range(UNK + 1, len(pieces))]
        tags = max(0, scores.count(0.0) - 1)
        learned = scores[tags:]
        if learned != [-number for number in range(len(learned))]:  # of unigrams: probabilities
            raise DragomanError(
                "BPE-dropout needs a vocabulary of kind bpe, and this one is none; "
                "set its dropout to 0 or give another model."
            )
        return UNK + 1 + tags

    def __call__(self, ids: Sequence[int], chance: random.Random) -> list[int]:
        """Other ids for the same text; a word with an unknown letter stays as it is."""
        return [unit for word in self.words(ids) for unit in self.cut(word, chance)]

    def within(self, ids: Sequence[int], most: int, chance: random.Random) -> Sequence[int]:
        """Other ids if there is room for them, else those given."""
        other = self(ids, chance)
        return other if len(other) <= most else ids

    def words(self, ids: Sequence[int]) -> list[list[int]]:
        """The ids of each word: units are never joined across a space, nor with a tag."""
        words: list[list[int]] = []
        begins = True
        for unit in map(int, ids):
            piece = self.pieces[unit]
            tag = UNK < unit < self.first
            if begins or tag or (not self.suffix and piece.startswith(SPACE)):
                words.append([])
            words[-1].append(unit)
            begins = tag or (self.suffix and piece.endswith(SPACE))
        return words

    def cut(self, word: list[int], chance: random.Random) -> list[int]:
        if min(word) < self.first:
            return word
        units = list("".join(self.pieces[unit] for unit in word))
        if any(letter not in self.rank for letter in units):
            return word  # a letter that has no unit of its own
        while (place := self.best_pair(units, chance)) is not None:
            units[place : place + 2] = ["".join(units[place : place + 2])]
        return [self.rank[unit] for unit in units]

    def best_pair(self, units: list[str], chance: random.Random) -> int | None:
        """Where the two neighbours stand that were joined first in learning, of those noticed."""
        best, found = len(self.rank) + UNK + 1, None
        for place, (left, right) in enumerate(pairwise(units)):
            rank = self.rank.get(left + right)
            if rank is not None and rank < best and chance.random() >= self.share:
                best, found = rank, place
        return found
