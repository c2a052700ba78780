"""Words that wait to be spoken, and where they may be cut into phrases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.text.languages import UNSPACED
from dragoman.text.phrases import CLAUSE_END, break_cost
from dragoman.text.sentences import ends_sentence

MOST_WORDS = 1000
"""Words that wait one by one; beyond, new text joins the last of them. Nothing is lost."""

_WORD = re.compile(r"(\s*)(\S+?[。！？、，；：]+|\S+)")
_MARKS = re.compile(r"^[^\w\s]*$")
_TIGHT_BEFORE = re.compile(r"^[-.,;:!?…)\]'”’»。！？、，；：」』]")


@dataclass(frozen=True, slots=True)
class Pace:
    """How speech follows the text; times in seconds."""

    few: int = 3
    """Fewer words than this are no phrase, unless nobody says more."""
    pause: float = 1.2
    """When so long nothing more was said, what waits is spoken, whole or not…"""
    wait: float = 3.0
    """…and words that waited so long are spoken up to the best place to stop."""
    on_time: float = 1.0
    """Speech that is no later than this is spoken at its normal speed…"""
    late: float = 4.0
    """…and faster the later it is, up to the fastest."""
    fastest: float = 1.35
    longest: int = 160
    """Characters of a phrase: the speed may change only between phrases."""

    def speed(self, lag: float) -> float:
        """How fast to speak words that begin this late."""
        share = (lag - self.on_time) / (self.late - self.on_time)
        return 1.0 + (self.fastest - 1.0) * min(1.0, max(0.0, share))


@dataclass(frozen=True, slots=True)
class Phrase:
    """What is spoken in one breath, from `start`, at a speed; its first word was said `at`."""

    text: str
    at: float
    start: float
    speed: float


@dataclass(frozen=True, slots=True)
class Word:
    """A word that waits, with the space before it and when it was said."""

    space: str
    text: str
    at: float
    end: float
    language: str = ""

    @property
    def ends_phrase(self) -> bool:
        """Whether a mark says so, whatever follows."""
        ends = ends_sentence(self.text, language=self.language)
        return ends or bool(CLAUSE_END.search(self.text))


class Words:
    """The words of a language that wait, in order."""

    def __init__(self, language: str = "") -> None:
        self._language = language
        self.waiting: list[Word] = []
        self._last_character = ""

    def add(self, text: str, at: float, end: float | None = None) -> list[Word]:
        """The words of a text said at a moment that is not before that of the text before it.

        They are not yet among those that wait. A mark that comes on its own joins the word before
        it; if that was spoken already, nobody misses it.
        """
        end = at if end is None else end
        words: list[Word] = []
        for space, word in _WORD.findall(text):
            if not (_MARKS.match(word) and _TIGHT_BEFORE.match(word)):
                words.append(Word(space, word, at, end, self._language))
            elif before := words or self.waiting:
                before[-1] = replace(before[-1], text=before[-1].text + word)
        if words:
            words[0] = replace(words[0], space=self._space_before(words[0].text))
            self._last_character = words[-1].text[-1]
        return words

    def append(self, words: Sequence[Word]) -> None:
        """Let words wait; a queue that is full joins them to its last word."""
        if words and len(self.waiting) + len(words) > MOST_WORDS:
            last = self.waiting.pop()
            words = [replace(last, text=last.text + "".join(w.space + w.text for w in words))]
        self.waiting.extend(words)

    def take(self, count: int) -> list[Word]:
        """The first so many words, which wait no longer."""
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken

    def _space_before(self, word: str) -> str:
        """Between two texts: a space, unless the script has none or a comma comes on its own."""
        if _TIGHT_BEFORE.match(word):
            return ""
        spaceless = UNSPACED.match(self._last_character) and UNSPACED.match(word)
        return "" if spaceless else " "


def text_of(words: Sequence[Word]) -> str:
    return "".join(word.space + word.text for word in words).strip()


def best_stop(words: Sequence[Word], few: int, following: str = "") -> int:
    """After how many words to stop where no mark says so: the best place, rather a late one."""
    after = [*(word.text for word in words[1:]), following]
    pairs = zip(words, after, strict=True)
    costs = [break_cost(word.text, next_, word.language) for word, next_ in pairs]
    counts = range(min(few, len(words)), len(words) + 1)
    return min(counts, key=lambda count: (costs[count - 1], -count))
