"""When which words are spoken, and how fast: shared by live speech and by files.

Nothing here knows a clock or a sound. Words come with the moment at which they were said; the
schedule gathers them into phrases and tells when the next one may begin. Words that wait for the
loudspeaker join the phrase at no cost, so phrases are long when much is said, and natural; when
nobody speaks, a phrase waits for its end, but not for long.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from itertools import takewhile

from dragoman.text.languages import UNSPACED

MOST_WORDS = 1000
"""Words that wait one by one; beyond, new text joins the last of them. Nothing is lost."""

_WORD = re.compile(r"(\s*)(\S+?[。！？、，；：]+|\S+)")
_BREAK = re.compile(r"[.,;:!?…—–。！？、，；：؟،؛।॥][\"'”’»)\]」』]*$")
_NO_BREAK = re.compile(r"^\W*(Mr|Mrs|Ms|Dr|Prof|St|Hr|Fr|[^\W\d_])\.$")
_TIGHT_BEFORE = re.compile(r"^[.,;:!?…)\]”’»。！？、，；：」』]")


@dataclass(frozen=True, slots=True)
class Pace:
    """How speech follows the text; times in seconds."""

    patience: float = 0.7
    """How long a phrase that could be spoken waits for more words, unless they end in a comma."""
    on_time: float = 1.5
    """Speech that is no later than this is spoken at its normal speed…"""
    late: float = 5.0
    """…and faster the later it is, up to the fastest."""
    fastest: float = 1.4
    longest: int = 200
    """Characters of a phrase: the speed may change only between phrases."""

    def speed(self, lag: float) -> float:
        """How fast to speak words that begin this late."""
        share = (lag - self.on_time) / (self.late - self.on_time)
        return 1.0 + (self.fastest - 1.0) * min(1.0, max(0.0, share))


@dataclass(frozen=True, slots=True)
class Word:
    """A word that waits, with the space before it and the moment it was said."""

    space: str
    text: str
    at: float

    @property
    def ends_phrase(self) -> bool:
        return bool(_BREAK.search(self.text)) and not _NO_BREAK.match(self.text)


@dataclass(frozen=True, slots=True)
class Phrase:
    """What is spoken in one breath, from `start`, at a speed."""

    text: str
    start: float
    speed: float


class Schedule:
    """The words that wait to be spoken."""

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._words: deque[Word] = deque()
        self._last_character = ""
        self._ended = False

    def add(self, text: str, at: float) -> None:
        """More text, said at a moment that is not before that of the text before it."""
        at = max(at, self._words[-1].at) if self._words else at
        words = [Word(space, word, at) for space, word in _WORD.findall(text)]
        if not words:
            return
        self._ended = False
        words[0] = Word(self._space_before(words[0]), words[0].text, at)
        self._last_character = words[-1].text[-1]
        if len(self._words) + len(words) > MOST_WORDS:
            last = self._words.pop() if self._words else Word("", "", at)
            words = [Word(last.space, _join([Word("", last.text, at), *words]), at)]
        self._words.extend(words)

    def end(self) -> None:
        """No more text comes for now: what waits need not wait for more."""
        self._ended = True

    def clear(self) -> None:
        """Forget what waits."""
        self._words.clear()

    @property
    def is_empty(self) -> bool:
        return not self._words

    def due(self, free: float) -> float | None:
        """When the next phrase may begin, if nothing is said until then; None without words.

        `free` is the end of the phrase before it.
        """
        if not self._words:
            return None
        ready = self._words[0].at + self._pace.patience
        ends = (word.at for word in self._words if word.ends_phrase)
        if self._ended:
            ready = min(ready, self._words[-1].at)
        return max(free, min(ready, next(ends, ready)))

    def take(self, now: float, start: float) -> Phrase:
        """The next phrase, of what was said by now: to its last comma if it has one, else all.

        It will begin at `start`, which is now or, when something still plays, soon.
        """
        words = self._fitting(now)
        ends = [count for count, word in enumerate(words, 1) if word.ends_phrase]
        words = words[: ends[-1]] if ends else words
        for _ in words:
            self._words.popleft()
        return Phrase(_join(words), start, self._pace.speed(start - words[0].at))

    def _fitting(self, now: float) -> list[Word]:
        """The words said by now, as many as a phrase may have; at least one."""
        fitting: list[Word] = []
        length = 0
        for word in takewhile(lambda word: word.at <= now, self._words):
            length += len(word.space) + len(word.text)
            if fitting and length > self._pace.longest:
                break
            fitting.append(word)
        return fitting

    def _space_before(self, word: Word) -> str:
        """Between two texts: a space, unless the script has none or a comma comes on its own."""
        if _TIGHT_BEFORE.match(word.text):
            return ""
        spaceless = UNSPACED.match(self._last_character) and UNSPACED.match(word.text)
        return "" if spaceless else " "


def _join(words: list[Word]) -> str:
    return "".join(word.space + word.text for word in words).strip()
