"""Captions: timed words become cues that can be read.

A cue has at most two lines of 42 columns, stays long enough to be read and never overlaps the next.
An interpreter says words in bursts; cues then follow each other as fast as `min_seconds` allows and
catch up in the next pause.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.text.languages import find_language
from dragoman.text.words import join_words, split_words

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SENTENCE_END = tuple(".!?…。！？؟।")


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word and when it was said, in seconds. What was written at once has start = end."""

    text: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Cue:
    """Lines that are shown from a moment to a moment, in seconds."""

    start: float
    end: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CaptionSettings:
    """What makes a cue readable."""

    columns: int = 42
    """The width of a line; a Chinese character takes two."""
    lines: int = 2
    min_seconds: float = 0.8
    max_seconds: float = 7.0
    columns_per_second: float = 20.0
    """How fast people read: a cue stays this long if nothing follows it."""
    pause_seconds: float = 1.5
    """A pause of this length ends a cue."""

    def __post_init__(self) -> None:
        if self.columns < 2 or self.lines < 1:
            raise DragomanError("Captions need at least one line of two columns.")
        if not 0 < self.min_seconds <= self.max_seconds:
            raise DragomanError("Captions need 0 < min_seconds <= max_seconds.")


class CaptionMaker:
    """Gathers words and gives each cue as soon as nothing about it can change."""

    def __init__(self, language: str = "en", settings: CaptionSettings | None = None) -> None:
        self._language = find_language(language).code
        self._settings = settings or CaptionSettings()
        self._words: list[TimedWord] = []
        self._latest = 0.0
        self._free_from = 0.0

    def say(self, word: TimedWord) -> list[Cue]:
        """Take the next word; gives the cue that it ended, if it begins a new one."""
        if not (math.isfinite(word.start) and math.isfinite(word.end)):
            raise DragomanError(f"The word '{word.text}' has no time that captions could show.")
        self._latest = max(self._latest, word.start)  # words come in order, whatever their times
        end = max(self._latest, word.end)
        cues = []
        for text in self._pieces(word.text):
            piece = TimedWord(text, self._latest, end)
            if self._words and self._begins_cue(piece):
                cues.append(self._cue(until=piece.start))
            self._words.append(piece)
        return cues

    def finish(self) -> list[Cue]:
        """The last cue."""
        return [self._cue(until=math.inf)] if self._words else []

    def _pieces(self, text: str) -> Iterator[str]:
        """The words in a text, those that are wider than a line in parts."""
        for word in split_words(_CONTROL.sub(" ", text), self._language):
            yield from _cut(word, self._settings.columns)

    def _begins_cue(self, word: TimedWord) -> bool:
        settings, last = self._settings, self._words[-1]
        text = self._text(self._words)
        return (
            word.start - last.end >= settings.pause_seconds
            or word.end - self._start() > settings.max_seconds
            or (text.endswith(_SENTENCE_END) and width(text) > settings.columns / 2)
            or len(self._lines([*self._words, word], settings.columns)) > settings.lines
        )

    def _start(self) -> float:
        return max(self._words[0].start, self._free_from)

    def _cue(self, until: float) -> Cue:
        """The cue of the words so far, which the next may follow at a moment."""
        settings, start = self._settings, self._start()
        reading = width(self._text(self._words)) / settings.columns_per_second
        shown = max(self._words[-1].end - start, reading, settings.min_seconds)
        soonest = start + settings.min_seconds
        end = min(start + min(shown, settings.max_seconds), max(until, soonest))
        cue = Cue(start, end, tuple(self._balanced_lines()))
        self._words, self._free_from = [], end
        return cue

    def _text(self, words: Sequence[TimedWord]) -> str:
        return join_words((word.text for word in words), self._language)

    def _lines(self, words: Sequence[TimedWord], columns: int) -> list[str]:
        """Fill line after line."""
        lines: list[str] = []
        row: list[TimedWord] = []
        for word in words:
            if row and width(self._text([*row, word])) > columns:
                lines.append(self._text(row))
                row = []
            row.append(word)
        return [*lines, self._text(row)]

    def _balanced_lines(self) -> list[str]:
        """As few lines as it takes, none much longer than the others."""
        columns = self._settings.columns
        best = self._lines(self._words, columns)
        for narrower in range(columns - 1, 0, -1):
            lines = self._lines(self._words, narrower)
            if len(lines) > len(best):
                break
            best = lines
        return best


def make_cues(
    words: Iterable[TimedWord], language: str = "en", settings: CaptionSettings | None = None
) -> Iterator[Cue]:
    """The cues of all words."""
    maker = CaptionMaker(language, settings)
    for word in words:
        yield from maker.say(word)
    yield from maker.finish()


def width(text: str) -> int:
    """The columns that a text takes: two for wide characters, none for what has no width."""
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cut(word: str, columns: int) -> Iterator[str]:
    part = ""
    for char in word:
        if part and width(part + char) > columns:
            yield part
            part = ""
        part += char
    if part:
        yield part
