"""Which words share a cue and where its lines break: the cheapest way, by dynamic programming.

A cue costs something by itself, so there are few; a break costs what it spoils (`phrases.py`); a
cue that spans a pause, or would have to be shown too long, costs so much that it is made only where
nothing else is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from unicodedata import east_asian_width

from dragoman.errors import DragomanError
from dragoman.text.phrases import INSIDE, SENTENCE, break_cost
from dragoman.text.words import join_words

PER_CUE = 1.0
"""Of a cue by itself."""
SHORT, TOO_LONG, PAUSE, MIXED = 1.0, 20.0, 4.0, 1.0
SHORT_COLUMNS = 15
"""A cue of fewer columns flashes by."""
UNEVEN = 1.5
"""What it costs if one line is empty and the other full."""
TORN = 8.0
"""A line that ends inside what belongs together: another cue is better than that."""


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word and when it was said, in seconds. What was written at once has start = end."""

    text: str
    start: float
    end: float
    joined: bool = False
    """Whether it goes on without a space where the word before it stopped, as a late comma does."""


@dataclass(frozen=True, slots=True)
class CaptionSettings:
    """What makes a cue readable: the rules of broadcasters."""

    columns: int = 42
    """The most characters of a line; a wide one (Chinese, Japanese, Korean) counts as two."""
    wide_columns: int = 32
    """The same for a language written in wide characters: sixteen of them."""
    lines: int = 2
    min_seconds: float = 0.84
    max_seconds: float = 7.0
    columns_per_second: float = 20.0
    """How fast people read: a cue stays at least this long."""
    pause_seconds: float = 2.0
    """A pause of this length ends a cue."""

    def __post_init__(self) -> None:
        if min(self.columns, self.wide_columns) < 8 or self.lines < 1:
            raise DragomanError("Captions need at least one line of eight columns.")
        if not 0 < self.min_seconds <= self.max_seconds:
            raise DragomanError("Captions need 0 < min_seconds <= max_seconds.")
        if self.columns_per_second * self.max_seconds < self.columns * self.lines:
            raise DragomanError(
                "Captions that full cannot be read in max_seconds; allow fewer lines or columns."
            )


def width(text: str) -> int:
    """The columns of a text: one for each character, two for a wide one."""
    return sum(map(_columns, text))


@lru_cache(maxsize=4096)
def _columns(character: str) -> int:
    return 2 if east_asian_width(character) in "WF" else 1


def line_columns(language: str, settings: CaptionSettings) -> int:
    """The most columns of a line in a language."""
    wide = language in ("zh", "yue", "ja", "ko")
    return min(settings.columns, settings.wide_columns) if wide else settings.columns


class Passage:
    """Words of one language, one after the other; `[first:last]` of them may become a cue."""

    def __init__(
        self, words: Sequence[TimedWord], language: str, settings: CaptionSettings
    ) -> None:
        self.words, self._settings = words, settings
        self._columns = line_columns(language, settings)
        texts = [word.text for word in words]
        # What stands between two words depends on these two alone.
        self._pieces = [
            join_words(pair, language).removeprefix(pair[0]) for pair in pairwise(["", *texts])
        ]
        self._ends = [0, *accumulate(map(width, self._pieces))]
        costs = [break_cost(*pair, language) for pair in pairwise(texts)]
        self._breaks = [SENTENCE, *costs, SENTENCE]

    def text(self, first: int, last: int) -> str:
        return "".join(self._pieces[first:last]).lstrip()

    def width(self, first: int, last: int) -> int:
        if first == last:
            return 0
        space = len(self._pieces[first]) - len(self._pieces[first].lstrip())
        return self._ends[last] - self._ends[first] - space

    def lines(self, first: int, last: int, most: int) -> list[str] | None:
        """As few lines as it takes, broken where it reads best; None if they are too many."""
        found = self._best_lines(first, last, most)
        if found is None:
            return None
        places = [first, *found[1], last]
        return [self.text(one, two) for one, two in pairwise(places)]

    def cost(self, first: int, last: int, most: int) -> float | None:
        """What the cue of these words costs; None if it is too large, as any longer one is."""
        found = self._best_lines(first, last, most)
        if found is None:
            return None
        words, settings = self.words[first:last], self._settings
        cost = found[0] / 2 + self._breaks[last] + self._mixed(first, last)
        cost += SHORT * (self.width(first, last) < SHORT_COLUMNS)
        cost += TOO_LONG * (words[-1].end - words[0].start > settings.max_seconds)
        gaps = (two.start - one.end for one, two in pairwise(words))
        return cost + PAUSE * sum(gap >= settings.pause_seconds for gap in gaps)

    def _mixed(self, first: int, last: int) -> float:
        """A cue is part of a sentence or whole ones, rather than an end and a beginning."""
        if SENTENCE not in self._breaks[first + 1 : last]:
            return 0.0
        return MIXED * (0.3 if self._breaks[first] == self._breaks[last] == SENTENCE else 1.0)

    def _best_lines(self, first: int, last: int, most: int) -> tuple[float, list[int]] | None:
        """The cheapest way to the fewest lines: its cost, and before which words they break."""
        if self.width(first, last) <= self._columns:
            return 0.0, []
        for count in range(2, most + 1):
            if (found := min(self._ways(first, last, count), default=None)) is not None:
                return found
        return None

    def _ways(self, first: int, last: int, count: int) -> Iterator[tuple[float, list[int]]]:
        """Every way to break words into exactly so many lines."""
        if count == 1:
            if self.width(first, last) <= self._columns:
                yield 0.0, []
            return
        for place in range(first + 1, last):
            if (head := self.width(first, place)) > self._columns:
                return
            broken = TORN if self._breaks[place] >= INSIDE else self._breaks[place]
            for cost, places in self._ways(place, last, count - 1):
                second = self.width(place, min([last, *places[:1]]))
                uneven = UNEVEN * abs(head - second) / self._columns
                yield cost + broken + uneven, [place, *places]


Place = tuple[int, ...]
"""How many words of each language come before a cut."""


def cut(
    passages: Sequence[Passage], places: Sequence[Place], most: int
) -> list[tuple[Place, Place]]:
    """The cheapest way to cut passages that are shown together into cues of `most` lines each.

    `places` are those where they may be cut, from before the first word to after the last. A word
    is never wider than a line.
    """
    best: list[tuple[float, int]] = [(0.0, 0)]  # up to each place: the cost, the cue's start
    for end in range(1, len(places)):
        ways: list[tuple[float, int]] = []
        for start in range(end - 1, -1, -1):
            cost = _cost(passages, places[start], places[end], most)
            if cost is None:
                break
            ways.append((best[start][0] + cost, start))
        best.append(min(ways))
    ends = [len(places) - 1]
    while ends[-1] > 0:
        ends.append(best[ends[-1]][1])
    return [(places[one], places[two]) for one, two in pairwise(reversed(ends))]


def _cost(passages: Sequence[Passage], start: Place, end: Place, most: int) -> float | None:
    total = PER_CUE
    for passage, first, last in zip(passages, start, end, strict=True):
        if first < last:
            cost = passage.cost(first, last, most)
            if cost is None:
                return None
            total += cost / len(passages)
    return total
