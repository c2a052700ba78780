"""Who listens to an interpreter: captions, sound, a trace; and the talk that they listen to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dragoman.audio.chunk import Chunk
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter, Update
from dragoman.interrupts import interrupts
from dragoman.trace import Hearing, Recorder, Saying, Showing, TraceWriter

if TYPE_CHECKING:
    from dragoman.audio.film import Film
    from dragoman.text.caption_files import CaptionFile
    from dragoman.text.captions import TimedWord
    from dragoman.voices import Narration, Speaker, Voice


Report = Callable[[str], None]
"""Tells the user a sentence, while the talk goes on."""
LONG_MIX = 120.0
"""Seconds of a talk whose mix takes more than a moment: ten minutes of mp3 are 12 s of work."""


class Listener(Protocol):
    """Hears of every chunk and what it led to."""

    def take(self, chunk: Chunk, update: Update) -> None: ...


@contextmanager
def captions(
    path: Path,
    language: str,
    *,
    source: str | None = None,
    resume: bool = False,
    offset: float | None = None,
) -> Iterator[Listener]:
    """A .srt or .vtt file, each word where in the recording it was spoken, which is heard from
    `offset` seconds on.

    With `source`, the speaker's language, the speaker's words stand below the translation. With
    `resume` a file is gone on with.
    """
    from dragoman.text.caption_files import CaptionFile

    with CaptionFile(path, language, source_language=source, resume=resume, offset=offset) as file:
        yield _Captions(file, file.say, file.say_source if source else None)


@contextmanager
def source_captions(
    path: Path, language: str, *, resume: bool = False, offset: float | None = None
) -> Iterator[Listener]:
    """The same of what the speaker says, where the model writes it down."""
    from dragoman.text.caption_files import CaptionFile

    with CaptionFile(path, language, resume=resume, offset=offset) as file:
        yield _Captions(file, None, file.say)


class _Captions:
    def __init__(
        self,
        file: CaptionFile,
        say: Callable[[TimedWord], None] | None,
        say_source: Callable[[TimedWord], None] | None,
    ) -> None:
        from dragoman.text.word_times import TranscriptTimes, WordTimes

        self._file, self._say, self._say_source = file, say, say_source
        self._times, self._source_times = WordTimes(), TranscriptTimes()

    def take(self, chunk: Chunk, update: Update) -> None:
        now = update.hearing.audio_ms
        if self._say_source is not None:
            if update.transcript_language is not None:
                self._file.spoken_in(update.transcript_language)
            for word in self._source_times.place(update.transcript, now, update.transcript_lag_ms):
                self._say_source(word)
        if self._say is not None:
            for word in self._times.place(update.said, now, update.lag_ms):
                self._say(word)
        self._file.pause(now / 1000, update.silence_ms / 1000)


@contextmanager
def narration(
    speak: Path | None,
    mix: Path | None,
    voice: Voice,
    duck_db: float,
    report: Report | None = None,
    *,
    live: bool = False,
    quiet: bool = False,
    film: Film | None = None,
) -> Iterator[Listener]:
    """The translation spoken into files, each phrase where in the recording it was spoken.

    In a live talk the voice works on a thread of its own, so that the text never waits for it. If
    it needs longer than the talk, or the mix takes its time, that is reported, unless `quiet`; who
    does not want to wait for one of them interrupts it.
    """
    from dragoman.voices import Narration

    tell = report if report is not None and not quiet else lambda told: None
    with (
        ExitStack() as guarded,
        Narration(
            voice, speak, mix, duck_db=duck_db, apart=live, report=report, film=film
        ) as narrator,
    ):
        try:
            yield _Narrated(narrator)
        finally:  # from here until the files are closed
            leave_unsaid = partial(narrator.give_up, mix=False)
            guarded.enter_context(interrupts(narrator.give_up, leave_unsaid))
        if narrator.waiting > 1:
            tell(f"The voice has {narrator.waiting} phrases left to speak; Ctrl-C leaves them out.")
        if not narrator.finish():
            raise KeyboardInterrupt
        if mix is not None and narrator.heard > LONG_MIX:
            minutes = narrator.heard / 60
            tell(f"Mixing {mix.name}: {minutes:.0f} minutes of sound; Ctrl-C leaves it out.")


class _Narrated:
    def __init__(self, narrator: Narration) -> None:
        from dragoman.text.word_times import WordTimes

        self._narrator, self._times = narrator, WordTimes()

    def take(self, chunk: Chunk, update: Update) -> None:
        self._narrator.hear(chunk.samples, chunk.original)
        for word in self._times.place(update.said, update.hearing.audio_ms, update.lag_ms):
            self._narrator.say(word.text, 1000 * word.start, 1000 * word.end)


@contextmanager
def spoken(voice: str | None, language: str, report: Report) -> Iterator[Listener]:
    """The translation spoken aloud, on a thread of its own."""
    from dragoman.audio.playback import Player
    from dragoman.voices import Speaker, open_voice

    chosen = open_voice(voice, language)
    with (
        Player(chosen.rate) as player,
        Speaker(chosen, player, report=report) as speaker,
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
def traced(path: Path | None, source: str, report: Report) -> Iterator[Recorder | None]:
    """A trace file, if one is wanted."""
    if path is None:
        yield None
        return
    named = source.encode(errors="surrogateescape").decode(errors="replace")  # a trace is UTF-8
    with TraceWriter.begun(path) as writer:
        writer.begin(0, named)
        record = _Traced(writer, report)
        yield record
        record.end()


class _Traced:
    """A trace that cannot be written any more is told of at once, and does not end the talk."""

    def __init__(self, writer: TraceWriter, report: Report) -> None:
        self._writer, self._report = writer, report
        self._fault: DragomanError | None = None

    def heard(self, event: Hearing) -> None:
        self._try(lambda: self._writer.heard(event))

    def said(self, event: Saying) -> None:
        self._try(lambda: self._writer.said(event))

    def shown(self, event: Showing) -> None:
        self._try(lambda: self._writer.shown(event))

    def end(self) -> None:
        self._try(self._writer.end)
        if self._fault is not None:
            raise self._fault

    def _try(self, write: Callable[[], None]) -> None:
        if self._fault is None:
            try:
                write()
            except DragomanError as error:
                self._fault = error
                self._report(str(error))


def interpret(
    interpreter: Interpreter,
    chunks: Iterator[Chunk],
    audience: Sequence[Listener],
    report: Report,
    stop: Callable[[], None] | None = None,
    ending: Callable[[], None] | None = None,
) -> None:
    """Take a source through the loop before an audience, to its end or until Ctrl-C, of which
    `ending` is told at once: what is left to say may take a while.

    A listener whose file cannot be written is reported and left out at once, so that the others
    lose nothing; what was wrong is raised at the end. A reader of our output who went away ends
    the talk as Ctrl-C does.
    """
    present, faults = list(audience), []
    talk = Endable(chunks, stop, ending)
    with talk.ended_by_interrupt():
        for chunk in talk:
            update = interpreter.hear(chunk)
            for listener in tuple(present):
                try:
                    listener.take(chunk, update)
                except BrokenPipeError:
                    present.remove(listener)
                    talk.end()
                except DragomanError as error:
                    present.remove(listener)
                    faults.append(error)
                    report(str(error))
    if faults:
        raise faults[0]


class Endable:
    """Chunks that can be ended early so that the rest is still said and every file is whole.

    `stop` ends a source that knows how, such as a microphone. Another source is left where it is:
    its next chunk is taken for its last.
    """

    def __init__(
        self,
        chunks: Iterator[Chunk],
        stop: Callable[[], None] | None = None,
        ending: Callable[[], None] | None = None,
    ) -> None:
        self._chunks, self._stop, self._ending = chunks, stop, ending
        self._ended = False

    def end(self) -> None:
        self._ended = True
        if self._ending is not None:
            self._ending()
        if self._stop is not None:
            self._stop()

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in self._chunks:
            if self._ended and self._stop is None and not chunk.last:
                yield replace(chunk, last=True)
                return
            yield chunk

    @contextmanager
    def ended_by_interrupt(self) -> Iterator[None]:
        """Ctrl-C ends the talk, as does a request to terminate; a second one gives up. So does a
        terminal that is gone, unless somebody has seen to that (nohup)."""

        def on_interrupt() -> None:
            if self._ended:
                raise KeyboardInterrupt
            self.end()

        with interrupts(on_interrupt, self.end):
            yield
