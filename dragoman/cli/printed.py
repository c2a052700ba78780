"""What an interpreter prints: the result, on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.audio.chunk import Chunk
from dragoman.cli import silence_stdout
from dragoman.cli.notes import Notes, one_reader
from dragoman.errors import DragomanError
from dragoman.files import sentences_for
from dragoman.interpreter import Update
from dragoman.lag import lived_ms
from dragoman.listeners import Listener
from dragoman.terminal import shown_on
from dragoman.text.caption_layout import TimedWord
from dragoman.text.sentences import ends_sentence
from dragoman.text.word_times import TranscriptTimes

if TYPE_CHECKING:
    from dragoman.setup import Setup


class OutputLostError(DragomanError):
    """Standard output cannot be written any more: nothing that follows is read by anybody."""


WAIT_MS = 4000.0
"""Of sound, for which a line of the translation waits for the speaker's: what a recogniser may
still change is settled by then."""


@contextmanager
def plain_text(setup: Setup, notes: Notes, both: bool = False) -> Iterator[Listener]:
    """Words on standard output as they become final, a line break after each sentence.

    With `both`, lines in the speaker's language and lines of the translation.
    """
    write = _writer()
    printer: PlainText | PairedText = PairedText(write, setup)
    if not both:
        line_opens = notes.hold if one_reader() else lambda opens: None
        printer = PlainText(write, line_opens, setup.target)
    try:
        yield printer
    finally:
        printer.end()


def _writer() -> Callable[[str], None]:
    """Writes to standard output; on a terminal no line breaks inside a word."""
    from dragoman.cli.wrap import Wrapped, columns_of

    if not sys.stdout.isatty():
        return _print
    return Wrapped(_print, lambda: columns_of(sys.stdout)).write


def _print(text: str) -> None:
    try:
        with sentences_for(Path("standard output")), shown_on(1):
            sys.stdout.write(text)
            sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()  # it is told once
        raise
    except DragomanError as error:
        silence_stdout()
        raise OutputLostError(str(error)) from error


class PlainText:
    """Running text, a sentence a line; what waits for the end of a line is told behind it."""

    def __init__(
        self, write: Callable[[str], None], line_opens: Callable[[bool], None], language: str
    ) -> None:
        self._write, self._line_opens, self._language = write, line_opens, language
        self._word = ""  # the last one of an open line

    def take(self, chunk: Chunk, update: Update) -> None:
        text = ""
        for word in update.said:
            late = not word[:1].isspace()  # the stop of the word before, or a script without spaces
            text += word if self._word else word.lstrip()
            self._word = self._word + word if late else word
            if ends_sentence(self._word, language=self._language):
                self._put(text.rstrip() + "\n")
                text, self._word = "", ""
                self._line_opens(False)
        if text:
            self._put(text)

    def _put(self, text: str) -> None:
        self._line_opens(True)
        self._write(text)

    def end(self) -> None:
        if self._word:
            self._word = ""
            self._write("\n")
        self._line_opens(False)


class PairedText:
    """Both languages, a sentence a line, each line with its language before it.

    The speaker's words may be written down later than they are translated. A line of the
    translation waits until they are written down as far as it goes, but not for long: then what
    there is of the speaker's sentence comes before it.
    """

    def __init__(self, write: Callable[[str], None], setup: Setup) -> None:
        self._write, self._target = write, setup.target
        self._language = setup.source or "?"
        self._spoken, self._said = _Sentences(setup.source or ""), _Sentences(setup.target)
        self._spoken_times, self._said_times = TranscriptTimes(), TranscriptTimes()
        self._told = -1.0  # seconds up to which the speaker's words are printed
        self._waiting: list[_Waiting] = []

    def take(self, chunk: Chunk, update: Update) -> None:
        if update.transcript_language:
            self._language = self._spoken.language = update.transcript_language
        now = update.hearing.audio_ms
        said = self._said_times.place(update.said, now, update.lag_ms)
        self._waiting += [_Waiting(line, now) for line in self._said.add(said)]
        spoken = self._spoken_times.place(update.transcript, now, update.transcript_lag_ms)
        for line in self._spoken.add(spoken):
            self._print_spoken(line)
        self._answer(self._told)
        if self._waiting and now - self._waiting[0].since_ms >= WAIT_MS:
            self._print_spoken(self._spoken.rest())
        while self._waiting and now - self._waiting[0].since_ms >= WAIT_MS:
            self._answer(self._waiting[0].line.middle)

    def end(self) -> None:
        self._print_spoken(self._spoken.rest())
        self._answer(inf)
        self._print(self._target, self._said.rest().text)

    def _print_spoken(self, line: Line) -> None:
        """And the lines of the translation that have waited for it."""
        self._print(self._language, line.text)
        self._told = max(self._told, line.end)
        self._answer(self._told)

    def _answer(self, until: float) -> None:
        """Print the lines of the translation of what was spoken until then."""
        while self._waiting and self._waiting[0].line.middle <= until:
            self._print(self._target, self._waiting.pop(0).line.text)

    def _print(self, language: str, line: str) -> None:
        if line:
            self._write(f"{language}: {line}\n")


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence, and when it was spoken, in seconds."""

    text: str
    start: float
    end: float

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A line of the translation."""

    line: Line
    since_ms: float


class _Sentences:
    """Words as they come, a sentence at a time."""

    def __init__(self, language: str) -> None:
        self._words: list[TimedWord] = []
        self.language = language

    def add(self, words: Sequence[TimedWord]) -> Iterator[Line]:
        """The sentences that end with these words."""
        for word in words:
            self._words.append(word)
            text = "".join(word.text for word in self._words)
            if word.text.strip() and ends_sentence(text.split()[-1], language=self.language):
                yield self.rest()

    def rest(self) -> Line:
        """What has begun, which is then taken for ended."""
        words, self._words = self._words, []
        times = (words[0].start, words[-1].end) if words else (-1.0, -1.0)
        return Line("".join(word.text for word in words).strip(), *times)


@contextmanager
def text_afterwards(setup: Setup, both: bool = False) -> Iterator[Listener]:
    """The text on standard output when all is over, be it by an error: a screen hides it now."""
    lines: list[str] = []
    printer: PlainText | PairedText = PlainText(lines.append, lambda opens: None, setup.target)
    if both:
        printer = PairedText(lines.append, setup)
    try:
        yield printer
    finally:
        printer.end()
        _writer()("".join(lines))


class Headings:
    """Which of several recordings the lines below are the text of."""

    def __init__(self) -> None:
        self._any = False

    def of(self, file: str) -> Listener:
        """A heading before the first words, an empty line before every heading but the first."""
        return _Heading(lambda: self._put(file))

    def _put(self, file: str) -> None:
        gap, self._any = "\n" if self._any else "", True
        _print(f"{gap}==> {file} <==\n")


class _Heading:
    def __init__(self, put: Callable[[], None]) -> None:
        self._put: Callable[[], None] | None = put

    def take(self, chunk: Chunk, update: Update) -> None:
        put, self._put = self._put, None
        if put is not None:
            put()


@contextmanager
def json_lines(both: bool = False, file: str | None = None) -> Iterator[Listener]:
    """One JSON object per update that said something, on a line of its own; with the `file` that
    it is of, where there are several."""
    yield JsonLines(_print, both, file)


class JsonLines:
    """What was said, what may follow, how much was heard, when it was shown, in which language."""

    def __init__(
        self, write: Callable[[str], None], both: bool = False, file: str | None = None
    ) -> None:
        self._write, self._both = write, both
        self._begin: dict[str, object] = {} if file is None else {"file": file}

    def take(self, chunk: Chunk, update: Update) -> None:
        if not update.said and not update.interim and not update.transcript:
            return
        lag_ms = lived_ms(update)
        row = self._begin | {
            "said": "".join(update.said),
            "interim": update.interim,
            "heard_ms": round(update.hearing.audio_ms),
            "shown_ms": round(update.hearing.end_ms),
            "lag_ms": None if lag_ms is None else round(lag_ms),
            "language": update.language,
        }
        if self._both:
            row["transcript"] = "".join(update.transcript)
            row["transcript_language"] = update.transcript_language
        self._write(json.dumps(row, ensure_ascii=False) + "\n")
