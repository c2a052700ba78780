"""Who listens to an interpreter on the command line: text, JSON, captions, sound, a trace."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dragoman.audio.chunk import Chunk
from dragoman.interpreter import Interpreter, Update
from dragoman.trace import Recorder, TraceWriter

if TYPE_CHECKING:
    from dragoman.text.caption_files import CaptionFile
    from dragoman.voices import Narration, Speaker


class Listener(Protocol):
    """Hears of every chunk and what it led to."""

    def take(self, chunk: Chunk, update: Update) -> None: ...


@contextmanager
def plain_text() -> Iterator[Listener]:
    """Words on standard output as they become final, a line break after each sentence."""
    printer = _PlainText()
    try:
        yield printer
    finally:
        printer.end()


class _PlainText:
    def __init__(self) -> None:
        self._fresh = True  # at the start of a line

    def take(self, chunk: Chunk, update: Update) -> None:
        for word in update.said:
            sys.stdout.write(word.lstrip() if self._fresh else word)
            self._fresh = word.rstrip().endswith((".", "?", "!", "。", "？", "！"))
            if self._fresh:
                sys.stdout.write("\n")
        sys.stdout.flush()

    def end(self) -> None:
        if not self._fresh:
            sys.stdout.write("\n")
        sys.stdout.flush()


@contextmanager
def json_lines() -> Iterator[Listener]:
    """One JSON object per update that said something: what, how much was heard, when it showed."""
    yield _JsonLines()


class _JsonLines:
    def take(self, chunk: Chunk, update: Update) -> None:
        import json

        if not update.said and not update.interim:
            return
        row = {
            "said": "".join(update.said),
            "interim": update.interim,
            "heard_ms": round(update.hearing.audio_ms),
            "shown_ms": round(update.hearing.end_ms),
        }
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
        sys.stdout.flush()


@contextmanager
def captions(path: Path, language: str, *, resume: bool = False) -> Iterator[Listener]:
    """A .srt or .vtt file, each word where in the recording it was spoken."""
    from dragoman.text.caption_files import CaptionFile

    with CaptionFile(path, language, resume=resume) as file:
        yield _Captions(file)


class _Captions:
    def __init__(self, file: CaptionFile) -> None:
        from dragoman.text.word_times import WordTimes

        self._file, self._times = file, WordTimes()

    def take(self, chunk: Chunk, update: Update) -> None:
        for word in self._times.place(update.said, update.hearing.audio_ms, update.lag_ms):
            self._file.say(word)


@contextmanager
def narration(
    speak: Path | None,
    mix: Path | None,
    voice: str | None,
    language: str,
    duck_db: float = 12.0,
) -> Iterator[Listener]:
    """The translation spoken into files, each phrase where in the recording it was spoken."""
    from dragoman.voices import Narration, open_voice

    chosen = open_voice(voice, language)
    with Narration(chosen, speak=speak, mix=mix, duck_db=duck_db) as narrator:
        yield _Narrated(narrator)


class _Narrated:
    def __init__(self, narrator: Narration) -> None:
        from dragoman.text.word_times import WordTimes

        self._narrator, self._times = narrator, WordTimes()

    def take(self, chunk: Chunk, update: Update) -> None:
        self._narrator.hear(chunk.samples)
        for word in self._times.place(update.said, update.hearing.audio_ms, update.lag_ms):
            self._narrator.say(word.text, 1000 * word.start, 1000 * word.end)


@contextmanager
def spoken(voice: str | None, language: str) -> Iterator[Listener]:
    """The translation spoken aloud, on a thread of its own."""
    import click

    from dragoman.audio.playback import Player
    from dragoman.voices import Speaker, open_voice

    chosen = open_voice(voice, language)
    with (
        Player(chosen.rate) as player,
        Speaker(chosen, player, report=lambda text: click.echo(text, err=True)) as speaker,
    ):
        yield _Spoken(speaker)
        speaker.finish()


class _Spoken:
    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    def take(self, chunk: Chunk, update: Update) -> None:
        if update.said:
            self._speaker.say("".join(update.said))


@contextmanager
def summary() -> Iterator[Listener]:
    """At the end, on standard error: how far behind the speaker the words were."""
    counter = _Summary()
    yield counter
    counter.end()


class _Summary:
    def __init__(self) -> None:
        self.lag = Lag()

    def take(self, chunk: Chunk, update: Update) -> None:
        self.lag.take(update)

    def end(self) -> None:
        import click

        lag = self.lag
        if not lag.words:
            click.echo("Nothing was said.", err=True)
            return
        behind = ""
        if lag.plain_ms is not None and lag.aware_ms is not None:
            behind = (
                f", on average {lag.plain_ms / 1000:.1f} s behind the speaker "
                f"({lag.aware_ms / 1000:.1f} s with computation)"
            )
        click.echo(
            f"{lag.words} words from {lag.audio_ms / 1000:.1f} s of speech{behind}; "
            f"{lag.load:.2f} s of work per second.",
            err=True,
        )


class Lag:
    """How far behind the speaker the words are, by where the model looked when it said them."""

    def __init__(self) -> None:
        self.words = 0
        self.audio_ms = 0.0
        self._compute_ms = 0.0
        self._lags_ms = self._waits_ms = 0.0  # sums over all words with a lag
        self._timed = 0  # how many these are

    def take(self, update: Update) -> None:
        hearing, text = update.hearing, "".join(update.said)
        self.audio_ms = hearing.audio_ms
        self._compute_ms += hearing.compute_ms
        continued = bool(self.words and text and not text[0].isspace())  # as a late stop does
        count = len(text.split()) - continued
        self.words += count
        if update.lag_ms is not None:
            self._timed += count
            self._lags_ms += count * update.lag_ms
            self._waits_ms += count * (hearing.end_ms - hearing.arrival_ms)

    @property
    def plain_ms(self) -> float | None:
        """None where the model does not tell where it looks."""
        return self._lags_ms / self._timed if self._timed else None

    @property
    def aware_ms(self) -> float | None:
        """The same with the work on the words' chunks."""
        return (self._lags_ms + self._waits_ms) / self._timed if self._timed else None

    @property
    def load(self) -> float:
        """Work per second of audio; below 1 keeps up."""
        return self._compute_ms / max(self.audio_ms, 1.0)


@contextmanager
def traced(path: Path | None, source: str) -> Iterator[Recorder | None]:
    """A trace file, if one is wanted."""
    if path is None:
        yield None
        return
    path.unlink(missing_ok=True)
    with TraceWriter.open(path) as writer:
        writer.begin(0, source)
        yield writer
        writer.end()


def interpret(
    interpreter: Interpreter,
    chunks: Iterator[Chunk],
    audience: Sequence[Listener],
    stop: Callable[[], None] | None = None,
) -> None:
    """Take a source through the loop before an audience, to its end or until Ctrl-C."""
    for chunk in until_interrupted(chunks, stop):
        update = interpreter.hear(chunk)
        for listener in audience:
            listener.take(chunk, update)


def until_interrupted(chunks: Iterator[Chunk], stop: Callable[[], None] | None) -> Iterator[Chunk]:
    """The chunks; Ctrl-C ends them so that the rest is still said and every file is whole.

    `stop` ends a source that knows how, such as a microphone. Another source is left where it is:
    the next chunk is taken for its last. A second Ctrl-C gives up.
    """
    interrupted = False

    def on_interrupt(*_: object) -> None:
        nonlocal interrupted
        if interrupted:
            raise KeyboardInterrupt
        interrupted = True
        if stop is not None:
            stop()

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        for chunk in chunks:
            if interrupted and stop is None and not chunk.last:
                yield replace(chunk, last=True)
                return
            yield chunk
    finally:
        signal.signal(signal.SIGINT, before)
