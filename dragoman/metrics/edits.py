"""Cutting a text where it has the fewest word errors, with the bits of long integers as cells.

Neighbouring edit distances differ by at most one. So a row of the table is kept as bits, one per
token of the hypothesis, that say where the distance grows or shrinks, and some ten operations on
integers of any length give the next row (Myers 1999, Hyyrö 2003).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

# Bits held at a time: some hours of talk fit at once, a longer one is computed in blocks.
BLOCK_BITS = 2_000_000_000

# Where dropping a reference token and where adding a hypothesis token is a best way to come; where
# the distance is one more and where one less than to its left.
Row = tuple[int, int, int, int]


def fewest_errors(hypothesis: Sequence[str], sentences: Sequence[Sequence[str]]) -> list[int]:
    """Where to cut so that the errors against all sentences together are fewest.

    Of equally good ways back from the end the one is taken that drops a reference token, else the
    one that adds a hypothesis token, else a pair. Moving on to the next sentence before anything
    was said costs 1 more, so an output that lost its first sentence lends it a word of the second:
    an oddity, kept because mweralign has it.
    """
    ends = [0]
    for sentence in sentences:
        ends.append(ends[-1] + len(sentence))
    if not hypothesis:
        return [0] * len(ends)
    entered = _entries(_Table.of(hypothesis, sentences))
    return [0, *(entered[row] for row in ends[1:-1]), len(hypothesis)]


@dataclass(frozen=True, slots=True)
class _Table:
    """The table of distances without its inside: its two sides, and what is equal.

    The side is column 1, the distance to the first hypothesis token alone: from there on
    neighbours differ by at most one, which the cost of moving on spoils in column 0.
    """

    reference: list[str]
    equal: dict[str, int]  # for every token where it is in the hypothesis, from the second on
    columns: int
    side: list[int]  # [rows + 1] distances in column 1
    adding: list[bool]  # [rows + 1] whether that comes from column 0, by adding the token

    @classmethod
    def of(cls, hypothesis: Sequence[str], sentences: Sequence[Sequence[str]]) -> _Table:
        equal: dict[str, int] = {}
        for position, token in enumerate(hypothesis[1:]):
            equal[token] = equal.get(token, 0) | 1 << position
        side, adding = [1], [True]
        before = moved = 0  # the distance in column 0 one row up, and the sentence there
        for number, token in _numbered(sentences):
            pair = before + number - moved + (token != hypothesis[0])
            before, moved = before + number - moved + 1, number
            side.append(min(side[-1] + 1, before + 1, pair))
            adding.append(side[-1] == before + 1)
        return cls(list(chain.from_iterable(sentences)), equal, len(hypothesis), side, adding)

    def rows(self, grows: int, shrinks: int, begin: int, end: int) -> Iterator[Row]:
        """The rows below row `begin`, of which where it grows and shrinks is given."""
        mask = (1 << (self.columns - 1)) - 1
        for row in range(begin, end):
            here = self.equal.get(self.reference[row], 0)
            step = self.side[row + 1] - self.side[row]
            level = here | shrinks
            if step < 0:
                here |= 1
            same = (((here & grows) + grows) ^ grows) | here
            dropping = (shrinks | mask & ~(same | grows)) << 1 | (step > 0)
            falling = (grows & same) << 1 | (step < 0)
            grows, shrinks = (falling | ~(level | dropping)) & mask, dropping & level & mask
            yield dropping, grows << 1 | self.adding[row + 1], grows, shrinks


def _numbered(sentences: Sequence[Sequence[str]]) -> Iterator[tuple[int, str]]:
    """Every reference token with the number of its sentence."""
    for number, sentence in enumerate(sentences):
        for token in sentence:
            yield number, token


def _entries(table: _Table) -> list[int]:
    """For every row how many hypothesis tokens were used before the step down from it."""
    rows = len(table.reference)
    step = max(1, BLOCK_BITS // (2 * table.columns))
    begins = range(0, rows, step)
    tops = [((1 << (table.columns - 1)) - 1, 0)]
    for begin in begins[:-1]:
        for _, _, grows, shrinks in table.rows(*tops[-1], begin, begin + step):
            state = grows, shrinks
        tops.append(state)
    entered = [0] * rows + [table.columns]
    column = table.columns
    for begin in reversed(begins):
        block = [row[:2] for row in table.rows(*tops.pop(), begin, min(begin + step, rows))]
        for position in range(len(block) - 1, -1, -1):
            dropping, adding = block[position]
            while column and not dropping >> (column - 1) & 1:
                column -= 1  # a token is added, or paired
                if not adding >> column & 1:
                    break
            entered[begin + position] = column
    return entered
