"""What an interpreter prints: the result on standard output, the summary as a note."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.audio.chunk import Chunk
from dragoman.cli import silence_stdout
from dragoman.cli.notes import Notes, one_reader
from dragoman.errors import DragomanError
from dragoman.files import sentences_for
from dragoman.interpreter import Update
from dragoman.lag import Lag, lived_ms
from dragoman.listeners import Listener
from dragoman.text.sentences import ends_sentence

if TYPE_CHECKING:
    from dragoman.setup import Setup

LATE_CHUNKS = 4
"""So many chunks in a row that came late mean that the machine is too slow…"""
BUSY = 0.7
"""…if it worked for most of the time: a driver that wakes up brings much at once, too."""
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
        with sentences_for(Path("standard output")):
            sys.stdout.write(text)
            sys.stdout.flush()
    except (BrokenPipeError, DragomanError):
        silence_stdout()  # it is told once
        raise


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
    translation waits until the speaker's sentence, if one is open, has ended, but not for long.
    """

    def __init__(self, write: Callable[[str], None], setup: Setup) -> None:
        self._write, self._target = write, setup.target
        self._language = setup.source or "?"
        self._spoken, self._said = _Sentences(setup.source or ""), _Sentences(setup.target)
        self._answered = True  # a line of the translation came after the speaker's last
        self._waiting: list[tuple[float, str]] = []  # lines of the translation, and since when

    def take(self, chunk: Chunk, update: Update) -> None:
        self._language = update.language or self._language
        now = update.hearing.audio_ms
        self._waiting += [(now, line) for line in self._said.add(update.said)]
        for line in self._spoken.add(update.transcript):
            self._print(self._language, line)
            self._answered = False
            if self._waiting:
                self._answer()
        while self._waiting and self._is_due(now):
            self._answer()

    def end(self) -> None:
        self._print(self._language, self._spoken.rest())
        while self._waiting:
            self._answer()
        self._print(self._target, self._said.rest())

    def _is_due(self, now: float) -> bool:
        """Whether the first line that waits is to be printed, as nothing of the speaker's is to
        come before it."""
        return not self._answered or not self._spoken.open or now - self._waiting[0][0] >= WAIT_MS

    def _answer(self) -> None:
        self._print(self._target, self._waiting.pop(0)[1])
        self._answered = True

    def _print(self, language: str, line: str) -> None:
        if line:
            self._write(f"{language}: {line}\n")


class _Sentences:
    """Words as they come, a sentence at a time."""

    def __init__(self, language: str) -> None:
        self._text, self._language = "", language

    @property
    def open(self) -> bool:
        """Whether a sentence has begun that has not ended."""
        return bool(self._text.strip())

    def add(self, words: Sequence[str]) -> Iterator[str]:
        """The sentences that end with these words."""
        for word in words:
            self._text += word
            if word.strip() and ends_sentence(self._text.split()[-1], language=self._language):
                yield self.rest()

    def rest(self) -> str:
        """What has begun, which is then taken for ended."""
        text, self._text = self._text.strip(), ""
        return text


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


@contextmanager
def json_lines(both: bool = False) -> Iterator[Listener]:
    """One JSON object per update that said something, on a line of its own."""
    yield JsonLines(_print, both)


class JsonLines:
    """What was said, what may follow, how much was heard, when it was shown, in which language."""

    def __init__(self, write: Callable[[str], None], both: bool = False) -> None:
        self._write, self._both = write, both

    def take(self, chunk: Chunk, update: Update) -> None:
        if not update.said and not update.interim and not update.transcript:
            return
        lag_ms = lived_ms(update)
        row = {
            "said": "".join(update.said),
            "interim": update.interim,
            "heard_ms": round(update.hearing.audio_ms),
            "shown_ms": round(update.hearing.end_ms),
            "lag_ms": None if lag_ms is None else round(lag_ms),
            "language": update.language,
        }
        if self._both:
            row["transcript"] = "".join(update.transcript)
        self._write(json.dumps(row, ensure_ascii=False) + "\n")


@contextmanager
def detected(setup: Setup, notes: Notes) -> Iterator[Listener]:
    """Tells which language is heard, once it is known, if nobody said which."""
    yield _Detected(setup.source, notes)


class _Detected:
    def __init__(self, known: str | None, notes: Notes) -> None:
        self._known, self._notes = known, notes

    def take(self, chunk: Chunk, update: Update) -> None:
        if self._known is None and update.language is not None and update.said:
            self._known = update.language
            name = language_name(update.language)
            self._notes.tell(f"Heard: {name}. If that is wrong, name the language: --from CODE.")


def language_name(code: str) -> str:
    """English name and code: German (de)."""
    from dragoman.text.languages import find_language

    try:
        return f"{find_language(code).name} ({code})"
    except DragomanError:  # a model of somebody's own may hear others
        return code


@contextmanager
def pressed(setup: Setup, notes: Notes) -> Iterator[Listener]:
    """Tells once, while a live talk runs, that the machine is too slow for the setting."""
    yield _Pressed(setup, notes)


class _Pressed:
    def __init__(self, setup: Setup, notes: Notes) -> None:
        self._setup, self._notes = setup, notes
        self._late = 0
        self._work_ms = self._speech_ms = 0.0  # of the chunks that came late
        self._told = False

    def take(self, chunk: Chunk, update: Update) -> None:
        hearing, step_ms = update.hearing, self._setup.step_ms
        joined = chunk.seconds * 1000 > 1.5 * step_ms
        waited = hearing.start_ms - hearing.arrival_ms > step_ms
        if not (joined or waited):
            self._late, self._work_ms, self._speech_ms = 0, 0.0, 0.0
            return
        self._late += 1
        self._work_ms += hearing.compute_ms
        self._speech_ms += chunk.seconds * 1000
        busy = self._work_ms > BUSY * self._speech_ms
        if self._late >= LATE_CHUNKS and busy and not self._told:
            self._told = True
            slow = self._work_ms > self._speech_ms
            verdict = "is too slow for the setting" if slow else "hardly keeps up with the setting"
            self._notes.tell(
                f"This machine {verdict}: {self._work_ms / 1000:.1f} s of work "
                f"for {self._speech_ms / 1000:.1f} s of speech. {advice(self._setup)}"
            )


def advice(setup: Setup) -> str:
    """What to do when the machine is too slow."""
    smaller = "a smaller model ('dragoman models list'); 'dragoman check' measures it."
    cheaper = [f"--step {max(1.0, setup.step_ms / 500):g}s"] if setup.step_ms < 2000 else []
    cheaper += ["--beams 1"] if setup.beams > 1 else []
    if not cheaper:
        return f"Try {smaller}"
    return f"Try '--max-latency auto', or {' '.join(cheaper)}, or {smaller}"


@contextmanager
def summary(setup: Setup, notes: Notes) -> Iterator[Listener]:
    """At the end: how far behind the speaker the words were."""
    counter = _Summary(setup)
    try:
        yield counter
    finally:  # also when something went wrong after a talk, or in the middle of it
        if counter.lag.audio_ms:
            notes.tell(counter.sentence())
    if counter.lag.load > 1:
        notes.tell(f"A live speaker is too fast for this machine. {advice(setup)}")


class _Summary:
    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._languages: Counter[str] = Counter()  # words said of each
        self.lag = Lag()

    def take(self, chunk: Chunk, update: Update) -> None:
        before = self.lag.words
        self.lag.take(update)
        if update.language is not None and self._setup.source is None:
            self._languages[update.language] += self.lag.words - before

    def sentence(self) -> str:
        lag = self.lag
        if not lag.words:
            return _nothing(lag.audio_ms / 1000, self._setup.source)
        words = "1 word" if lag.words == 1 else f"{lag.words} words"
        return (
            f"{words} from {lag.audio_ms / 1000:.1f} s of speech{self._heard()}{_behind(lag)}; "
            f"{lag.load:.2f} s of work per second."
        )

    def _heard(self) -> str:
        """The language that was detected; after a pause another one may have been."""
        found = [language for language, words in self._languages.most_common() if words]
        if not found:
            return ""
        mostly = "mostly " if len(found) > 1 else ""
        return f", heard {mostly}as {language_name(found[0])}"


def _nothing(seconds: float, source: str | None) -> str:
    """Of a talk without a word: what might be wrong."""
    known = f"is it {language_name(source)}?" if source else "name the language: --from CODE."
    return f"Nobody was heard to speak in {seconds:.1f} s of sound. If somebody does, {known}"


def _behind(lag: Lag) -> str:
    if lag.plain_ms is None or lag.aware_ms is None:
        return f", shown {lag.wait_ms / 1000:.1f} s after the sound that led to them"
    return (
        f", on average {lag.aware_ms / 1000:.1f} s behind the speaker "
        f"({lag.plain_ms / 1000:.1f} s without computation)"
    )
