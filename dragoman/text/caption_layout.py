"""Which words share a cue and where its lines break: the cheapest way, by dynamic programming.

A cue costs something by itself, so there are few; a break costs what it spoils (`phrases.py`); a
cue that spans a pause, or would have to be shown too long, costs so much that it is made only where
nothing else is left.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from unicodedata import east_asian_width

from dragoman.errors import DragomanError
from dragoman.text.phrases import INSIDE, SENTENCE, break_cost
from dragoman.text.sentences import ends_sentence
from dragoman.text.words import join_words

PER_CUE = 1.0
"""Of a cue by itself."""
SHORT, TOO_LONG, PAUSE, MIXED = 1.0, 20.0, 4.0, 1.0
SHORT_COLUMNS = 15
"""A cue of fewer columns flashes by."""
SOON = 2.0
"""Seconds between the ends of a sentence and its translation that are taken for one moment."""
UNEVEN = 1.5
"""What it costs if one line is empty and the other full."""
TORN = 8.0
"""A line that ends inside what belongs together: another cue is better than that."""

_Broken = tuple[float, list[int]]
"""What it costs to break words into lines, and before which of them."""
_AS_IT_IS: _Broken = (0.0, [])


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

    def seconds_to_read(self, columns: int) -> float:
        """How long a cue of so many columns stays at the least."""
        return max(columns / self.columns_per_second, self.min_seconds)


@lru_cache(maxsize=4096)
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
        # Sums up to each word, so that what a cue costs takes no look at all its words.
        self._ends = [0, *accumulate(map(width, self._pieces))]
        spaces = (len(piece) - len(piece.lstrip()) for piece in self._pieces)
        self._starts = [end + space for end, space in zip(self._ends, spaces, strict=False)]
        pauses = [two.start - one.end >= settings.pause_seconds for one, two in pairwise(words)]
        self._pauses = [0, *accumulate(pauses)]
        costs = [break_cost(*pair, language) for pair in pairwise(texts)]
        self._breaks = [SENTENCE, *costs, SENTENCE]
        self._sentences = [*accumulate(cost == SENTENCE for cost in self._breaks)]
        last = words[-1].text if words else ""
        self.ends = [n for n, cost in enumerate(costs, 1) if cost == SENTENCE]
        """After how many words a sentence ends."""
        self.ends += [len(words)] * ends_sentence(last, language=language)

    def text(self, first: int, last: int) -> str:
        return "".join(self._pieces[first:last]).lstrip()

    def width(self, first: int, last: int) -> int:
        return self._ends[last] - self._starts[first] if first < last else 0

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
        seconds = self.words[last - 1].end - self.words[first].start
        cost = found[0] / 2 + self._breaks[last] + self._mixed(first, last)
        cost += SHORT * (self.width(first, last) < SHORT_COLUMNS)
        cost += TOO_LONG * (seconds > self._settings.max_seconds)
        return cost + PAUSE * (self._pauses[last - 1] - self._pauses[first])

    def _mixed(self, first: int, last: int) -> float:
        """A cue is part of a sentence or whole ones, rather than an end and a beginning."""
        if self._sentences[last - 1] == self._sentences[first]:
            return 0.0
        return MIXED * (0.3 if self._breaks[first] == self._breaks[last] == SENTENCE else 1.0)

    def _best_lines(self, first: int, last: int, most: int) -> _Broken | None:
        """The cheapest way to the fewest lines: its cost, and before which words they break."""
        if self.width(first, last) <= self._columns:
            return _AS_IT_IS
        for count in range(2, most + 1):
            if (found := min(self._ways(first, last, count), default=None)) is not None:
                return found
        return None

    def _ways(self, first: int, last: int, count: int) -> Iterator[_Broken]:
        """Every way to break words into exactly so many lines."""
        columns, begin = self._columns, self._starts[first]
        high = min(last, bisect_right(self._ends, begin + columns))  # beyond, the first is too wide
        low = first + 1
        if count == 2:  # before, the second is
            low = max(low, bisect_left(self._starts, self._ends[last] - columns))
        for place in range(low, high):
            head = self._ends[place] - begin
            broken = TORN if self._breaks[place] >= INSIDE else self._breaks[place]
            for cost, places in self._ways(place, last, count - 1) if count > 2 else [_AS_IT_IS]:
                second = self.width(place, places[0] if places else last)
                uneven = UNEVEN * abs(head - second) / columns
                yield cost + broken + uneven, [place, *places]


Place = tuple[int, ...]
"""How many words of each language come before a cut."""


def places_for(passages: Sequence[Passage]) -> list[Place]:
    """Where several languages may be cut together: after each word, in the order of their times.

    Sentences that end at about the same time in all of them are cut there, whoever is late.
    """
    meetings = _meetings(*passages) if len(passages) == 2 else []
    order = sorted(
        (sum(place[number] <= count for place in meetings), word.start, number)
        for number, passage in enumerate(passages)
        for count, word in enumerate(passage.words)
    )
    place = [0] * len(passages)
    places: list[Place] = [tuple(place)]
    for _, _, number in order:
        place[number] += 1
        places.append(tuple(place))
    return places


def _meetings(said: Passage, source: Passage) -> list[Place]:
    """After how many words of each language a sentence ends in both at about the same time."""
    meetings: list[Place] = []
    for count in said.ends:
        after, end = meetings[-1][1] if meetings else 0, said.words[count - 1].end
        gaps = [(abs(source.words[n - 1].end - end), n) for n in source.ends if n > after]
        if gaps and min(gaps)[0] < SOON:
            meetings.append((count, min(gaps)[1]))
    return meetings


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
