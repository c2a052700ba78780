"""Captions: timed words become cues that keep the rules of broadcasters.

Two lines of 42 characters at most; shown 0.84 to 7 seconds and long enough to be read at 20
characters a second; no cue overlaps the next or begins with a punctuation mark; cues and lines end
where a phrase ends. Cues never break these rules: a speaker who is too fast for them is followed at
the speed at which people read, and caught up with in the next pause.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman.errors import DragomanError
from dragoman.text.caption_layout import (
    CaptionSettings,
    Passage,
    Place,
    TimedWord,
    cut,
    line_columns,
    places_for,
    width,
)
from dragoman.text.languages import UNSPACED, find_language, look_up, written_without_spaces
from dragoman.text.phrases import INSIDE, break_cost
from dragoman.text.sentences import ends_sentence
from dragoman.text.words import split_words

__all__ = ["CaptionMaker", "CaptionSettings", "Cue", "TimedWord", "make_cues", "width"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_MARKS = ".,;:!?…)]}”’»。、，；：！？・）」』؟،؛।॥۔።։။។།"
_LEADING = re.compile(f"[{re.escape(_MARKS)}]+")
_OPENS = re.compile(r"[”’»]+\w")
"""A quotation of »German« or ”Swedish”, an apostrophe: such a mark closes nothing."""
_APART = re.compile(f"%[{re.escape(_MARKS)}]*|[!?;:»][{re.escape(_MARKS)}]*")
"""What may be written with a space before it: 58 %, and in French more."""
_BREAKING = re.compile(r"[^\S\xa0\u2007\u202f]+")
"""Spaces at which a line may break; the others hold together what they stand in."""
_ENDLESS = re.compile(f"([{re.escape(_MARKS)}]{{3}})[{re.escape(_MARKS)}]+")
_NUMBER = re.compile(r"[.,]\d")
LINGER = 0.5
"""Seconds: a gap between two cues that is shorter than this is closed, or the screen flickers."""
MOST_CUES = 4
"""So many full cues wait for the end of a sentence, no more."""
SETTLED = 8.0
"""Seconds of silence after which all that was spoken before it has been said, in both languages."""


@dataclass(frozen=True, slots=True)
class Cue:
    """Lines that are shown from a moment to a moment, in seconds."""

    start: float
    end: float
    lines: tuple[str, ...]


class CaptionMaker:
    """Gathers words and returns cues as soon as nothing about them can change.

    With a second language, that of the speaker, both are shown together: a line of the translation
    and below it a line of what was spoken at that time. Who reads follows one of them, so the
    reading speed is that of the longer line.
    """

    def __init__(
        self,
        language: str = "en",
        settings: CaptionSettings | None = None,
        source_language: str | None = None,
        free_from: float = 0.0,
    ) -> None:
        """No cue begins before `free_from`."""
        self._settings = settings or CaptionSettings()
        languages = [language] if source_language is None else [language, source_language]
        self._tracks = [_Track(find_language(name).code, self._settings) for name in languages]
        self._lines = max(1, self._settings.lines // len(self._tracks))
        self._free_from = free_from

    def say(self, word: TimedWord) -> list[Cue]:
        """Take the next word; returns the cues that are complete with it."""
        said = self._tracks[0]
        cues: list[Cue] = []
        alone = len(self._tracks) == 1  # else the speaker's words may come later, and belong here
        for piece in said.pieces(word):
            if alone and said.ended_before(piece):
                leading = said.take_leading(piece)
                cues += self._cues(until=piece.start)
                said.words += leading
            elif self._is_full():
                cues += self._cues(keep=2)
            said.words.append(piece)
        return cues

    def say_source(self, word: TimedWord) -> list[Cue]:
        """The same for the speaker's own words, where they are shown too."""
        if len(self._tracks) == 1:
            return []
        self._tracks[1].words.extend(self._tracks[1].pieces(word))
        return self._cues(keep=2) if self._is_full() else []

    def spoken_in(self, language: str) -> None:
        """Which language the speaker turns out to speak, whose words are shown last or alone."""
        if (known := look_up(language)) is not None:
            self._tracks[-1].be_in(known.code)

    def pause(self, now: float, silence: float) -> list[Cue]:
        """At a moment nobody has spoken for so many seconds: the cues that need not wait for the
        next word, which may be long in coming."""
        waiting = [track for track in self._tracks if track.words]
        if not waiting:
            return []
        since = min(silence, now - max(track.words[-1].end for track in waiting))
        begin = max(self._free_from, min(track.words[0].start for track in waiting))
        read = begin + self._settings.seconds_to_read(max(track.columns for track in waiting))
        ended = len(self._tracks) == 1 and waiting[0].has_ended
        over = since >= (self._settings.pause_seconds if ended else SETTLED)
        return self._cues() if over and now >= read + LINGER else []

    def finish(self) -> list[Cue]:
        """The last cues."""
        return self._cues()

    def _is_full(self) -> bool:
        room = MOST_CUES * 2 * self._settings.columns
        return any(track.columns > room for track in self._tracks)

    def _cues(self, until: float = math.inf, keep: int = 0) -> list[Cue]:
        """The cues of what waits, all but the last few; what follows begins at a moment."""
        taken = [track.words for track in self._tracks]
        passages = [Passage(t.words, t.language, self._settings) for t in self._tracks]
        spans = cut(passages, places_for(passages), self._lines)
        done = spans[: len(spans) - keep]
        starts = [_first(taken, span).start for span in spans]
        cues = [
            self._cue(passages, span, following)
            for span, following in zip(done, [*starts[1:], until], strict=False)
        ]
        for track, count in zip(self._tracks, done[-1][1] if done else (), strict=False):
            del track.words[:count]
        return cues

    def _cue(self, passages: Sequence[Passage], span: tuple[Place, Place], until: float) -> Cue:
        """The cue of some words, which the next should follow at a moment."""
        settings = self._settings
        parts = [part for part in zip(passages, *span, strict=True) if part[1] < part[2]]
        start = max(self._free_from, min(p.words[first].start for p, first, _ in parts))
        texts = [p.lines(first, last, self._lines) or [] for p, first, last in parts]
        columns = max(width(" ".join(lines)) for lines in texts)
        soonest = start + settings.seconds_to_read(columns)
        latest = start + settings.max_seconds
        end = min(latest, max(soonest, *(p.words[last - 1].end for p, _, last in parts)))
        if until < end + LINGER:
            end = min(latest, max(until, soonest))
        self._free_from = end
        return Cue(start, end, tuple(line for lines in texts for line in lines))


class _Track:
    """The words of one language that wait for their cue."""

    def __init__(self, language: str, settings: CaptionSettings) -> None:
        self.words: list[TimedWord] = []
        self._settings, self._latest = settings, 0.0
        self.be_in(language)

    def be_in(self, language: str) -> None:
        """Which language the words are of, if that was not known before."""
        self.language = language
        self._columns = line_columns(language, self._settings)
        # Lines may be shorter in it than in the one that words were cut for.
        self.words = [part for word in self.words for part in self._parts(word, word.text)]

    def pieces(self, word: TimedWord) -> Iterator[TimedWord]:
        """What a word adds: none where it goes on with the one before, parts if it is very wide."""
        if not (math.isfinite(word.start) and math.isfinite(word.end)):
            raise DragomanError(f"The word '{word.text}' has no time that captions could show.")
        text = _ENDLESS.sub(r"\1", _CONTROL.sub(" ", word.text))
        for number, part in enumerate(self._split(text)):
            if number == 0 and self.words and word.joined and not self._stands_alone(part):
                self._extend(part)
            elif part := self._without_marks(part):
                self._latest = max(self._latest, word.start)  # in order, whatever their times
                end = max(self._latest, word.end)
                for piece in _cut(part, self._columns):
                    yield TimedWord(piece, self._latest, end)

    def _split(self, text: str) -> list[str]:
        if written_without_spaces(self.language):
            return split_words(text, self.language)
        return [part for each in _BREAKING.split(text) if (part := each.strip())]

    def _stands_alone(self, part: str) -> bool:
        """Whether a line may break before it, though no space sets it apart."""
        return written_without_spaces(self.language) and UNSPACED.match(part) is not None

    def ended_before(self, word: TimedWord) -> bool:
        """Whether what waits ends before a word: with its sentence, if that fills half a line."""
        if not self.words:
            return False
        if word.start - self.words[-1].end >= self._settings.pause_seconds:
            return True
        enough = self.columns > self._settings.columns / 2
        return enough and ends_sentence(self.words[-1].text, word.text, self.language)

    def take_leading(self, word: TimedWord) -> list[TimedWord]:
        """The last words that wait, if a word goes on with them: "um" before "das", however long
        ago it was said. They are shown with it."""
        count, following = len(self.words), word.text
        while count and break_cost(self.words[count - 1].text, following, self.language) >= INSIDE:
            count -= 1
            following = self.words[count].text
        leading = [replace(each, start=word.start, end=word.start) for each in self.words[count:]]
        del self.words[count:]
        return leading

    @property
    def has_ended(self) -> bool:
        """Whether what waits ends with a sentence."""
        return bool(self.words) and ends_sentence(self.words[-1].text, language=self.language)

    @property
    def columns(self) -> int:
        """Of all that waits, in one line."""
        return sum(width(word.text) + 1 for word in self.words) - 1

    def _without_marks(self, text: str) -> str:
        """A text without the marks at its head, which belong to the word before it; a space before
        them stays, where it is right."""
        if _NUMBER.match(text):
            return f"0{text}"
        apart = _APART.fullmatch(text) if self.language == "fr" or text[0] == "%" else None
        if apart is not None and self.words:
            self._extend(text, space=" ")
            return ""
        marks = _LEADING.match(text)
        if marks is None or _OPENS.match(text):
            return text
        if self.words:
            self._extend(marks[0])
        return text[marks.end() :]

    def _extend(self, text: str, space: str = "") -> None:
        last = self.words.pop()
        if width(last.text + space + text) <= self._columns:  # else it is cut somewhere
            text = space + text
        self.words += self._parts(last, _ENDLESS.sub(r"\1", last.text + text))

    def _parts(self, word: TimedWord, text: str) -> list[TimedWord]:
        """A word with another text, in parts that fit into a line."""
        return [replace(word, text=part) for part in _cut(text, self._columns)]


def make_cues(
    words: Iterable[TimedWord], language: str = "en", settings: CaptionSettings | None = None
) -> Iterator[Cue]:
    """The cues of all words."""
    maker = CaptionMaker(language, settings)
    for word in words:
        yield from maker.say(word)
    yield from maker.finish()


def _first(tracks: Sequence[Sequence[TimedWord]], span: tuple[Place, Place]) -> TimedWord:
    """The word of a cue that came first."""
    heads = [t[i] for t, i, j in zip(tracks, *span, strict=True) if i < j]
    return min(heads, key=lambda word: word.start)


def _cut(word: str, columns: int) -> Iterator[str]:
    """A word in parts that fit into a line; its marks stay with its last letter."""
    part = ""
    for char in word:
        if part and width(part + char) > columns:
            letters = len(part.rstrip(_MARKS)) - 1 if _LEADING.match(char) else len(part)
            yield part[:letters]
            part = part[letters:]
        part += char
    if part:
        yield part
