"""`dragoman translate`: a recording or a pipe, interpreted as if it were spoken now."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.captions import CaptionFiles, caption_options
from dragoman.cli.hearing import Hearing, hearing_options
from dragoman.cli.ranges import MOMENT, OUTPUT, Number
from dragoman.cli.recordings import (
    Dub,
    Recording,
    check_recordings,
    one_after_the_other,
    recordings_of,
)
from dragoman.cli.setup_options import auto_is_left, read_system, setup_options, show_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.cli.notes import Notes
    from dragoman.cli.printed import Headings
    from dragoman.cli.sound import Part
    from dragoman.listeners import Listener
    from dragoman.setup import System
    from dragoman.voices import Voice

_input = grouped("Input")
_output = grouped("Output")


@click.command(cls=GroupedCommand)
@click.argument("files", metavar="FILE...|-", nargs=-1, required=True)
@setup_options
@_input(
    "--start",
    type=MOMENT,
    metavar="TIME",
    help="Begin here, such as 90 (seconds) or 1:30; captions keep the recording's times.",
)
@_input("--end", type=MOMENT, metavar="TIME", help="Stop here.")  # fmt: skip
@hearing_options
@_input("--realtime", is_flag=True, help="Hear the file at the speed it was spoken.")
@show_option
@_output("--json", "as_json", is_flag=True, help="JSON lines instead of text.")
@caption_options
@_output("--trace", type=OUTPUT, metavar="FILE", help="Write what was heard and said, when.")
@_output("--speak", type=OUTPUT, metavar="FILE", help="Speak the translation into a sound file.")
@_output("--mix", type=OUTPUT, metavar="FILE",
         help="Write the recording with the interpreter in it; for a film also .mp4 or .mkv, with "
         "picture and captions.",
         )  # fmt: skip
@_output("--duck", type=Number(0, 60), metavar="DB",
         help="How much softer the speaker is under the interpreter in --mix (default 12).",
         )  # fmt: skip
@_output("--voice", metavar="NAME", help="Voice to speak with ('dragoman voices' lists them).")
@_output("--quiet", is_flag=True, help="No progress, no summary.")
def command(
    files: tuple[str, ...],
    start: float | None,
    end: float | None,
    hearing: Hearing,
    realtime: bool,
    show: str,
    as_json: bool,
    captions: CaptionFiles,
    trace: Path | None,
    speak: Path | None,
    mix: Path | None,
    duck: float | None,
    voice: str | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Translate speech from each FILE, or from standard input (-), while it is being heard.

    Words appear as they become final. By default a file is heard as fast as the machine allows;
    latencies are those of a live speaker all the same. A pipe is live: it is heard as it comes.

    With several files, what is written goes to a folder, or to a name with {name} in it, which
    stands for the name of each. A file that cannot be heard does not stop the others.

    \b
    dragoman translate talk.mp3 --from de > talk.txt
    dragoman translate talk.ogg --from en --to de --captions talk.srt
    dragoman translate talk.wav --speak english.mp3
    dragoman translate talks/*.ogg --captions captions/ --speak '{name}.en.mp3'
    arecord -f S16_LE -r 16000 | dragoman translate - --from es
    """
    from dragoman.cli import told
    from dragoman.cli.notes import open_notes
    from dragoman.cli.printed import Headings
    from dragoman.cli.progress import audio_progress

    recordings = recordings_of(files, Recording("", captions, trace, Dub(speak, mix, duck, voice)))
    part = hearing.part(start or 0.0, end)
    check_recordings(recordings, part, options["setup"])
    with open_notes() as notes:
        system = read_system(notes.tell, notes.advise, **options)
        advice = told.slow_advice(system.setup, auto=auto_is_left(options))
        wanted = Wanted(part, start is not None, realtime, show == "both", as_json, quiet, advice)
        run = FileRun(system, notes, wanted, recordings[0])
        if len(recordings) == 1:
            run.interpret(recordings[0])
            return 0
        run.get_ready()
        hidden = quiet or realtime
        with audio_progress(files, start or 0.0, end, hidden=hidden) as bar:
            headings = Headings()

            def interpret(number: int, recording: Recording) -> None:
                run.interpret(recording, headings, lambda begin: bar(number, begin))

            return one_after_the_other(recordings, interpret, notes)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options say of every recording alike."""

    part: Part
    from_there: bool
    """Whether somebody has said where to begin."""
    realtime: bool
    both: bool
    as_json: bool
    quiet: bool
    advice: str
    """What to do about a machine that is too slow."""


class FileRun:
    """What stays from one recording to the next: the model, the voice, the options."""

    def __init__(self, system: System, notes: Notes, wanted: Wanted, one: Recording) -> None:
        """Of all recordings the same kinds of files are made as of one of them."""
        self._system, self._notes, self._wanted, self._one = system, notes, wanted, one
        self._transcript = wanted.both or one.captions.need_transcript

    @cached_property
    def _voice(self) -> Voice | None:
        return self._one.dub.open_voice(self._system.setup.target)

    def get_ready(self) -> Voice | None:
        """Tell what would be wrong with every recording; the voice, if any is to be heard."""
        from dragoman.cli.sound import check_fit

        voice = self._voice
        check_fit(self._system, self._transcript)
        return voice

    def interpret(
        self,
        recording: Recording,
        headings: Headings | None = None,
        bar: Callable[[float], Listener] | None = None,
    ) -> None:
        """Interpret one recording; of several each has its heading, and one bar is for all."""
        from dragoman import listeners
        from dragoman.cli import printed, told
        from dragoman.cli.progress import audio_progress
        from dragoman.cli.sound import open_file, open_interpreter

        wanted, notes, setup = self._wanted, self._notes, self._system.setup
        captions, quiet = recording.captions, wanted.quiet
        part, before = wanted.part, None
        if not wanted.from_there:
            before = captions.found(recording.file, setup.target, part)
        if before is not None:
            part = replace(part, start=before.start)
        original = recording.dub.mix is not None
        sound = open_file(recording.file, setup.step_ms, wanted.realtime, part, original)
        voice = self.get_ready()
        with ExitStack() as stack:
            enter = stack.enter_context
            # First in, last out: the summary comes after the last line of text has been ended, and
            # so does the wait for a voice that needs longer than the talk.
            audience = [] if quiet else [enter(told.summary(setup, notes, wanted.advice))]
            spoken = []
            if voice is not None:
                film = recording.film(self._system, part)
                how = {"live": sound.live, "quiet": quiet}
                dubbed = recording.dub.narration(voice, notes.tell, **how, film=film)
                spoken.append(enter(dubbed))
            if wanted.as_json:
                file = None if headings is None else recording.file
                audience.append(enter(printed.json_lines(wanted.both, file)))
            else:
                audience += [] if headings is None else [headings.of(recording.file)]
                audience.append(enter(printed.plain_text(setup, notes, wanted.both)))
            if not quiet:
                audience.append(enter(told.detected(self._system, notes, self._transcript)))
            if sound.live and not quiet:
                audience.append(enter(told.pressed(setup, notes, wanted.advice)))
            offset = part.start if wanted.from_there or before is not None else None
            audience += map(enter, captions.listeners(setup, offset))
            audience += spoken
            record = enter(listeners.traced(recording.trace, recording.file, notes.tell))
            clock = sound.clock()
            interpreter = open_interpreter(self._system, record, clock, self._transcript)
            if before is not None:
                notes.tell(before.sentence())
                interpreter.recall(before.words)
            if bar is None:
                hidden = quiet or sound.live
                alone = audio_progress([recording.file], part.start, part.end, hidden=hidden)
                audience.append(enter(alone)(0, part.start))
            else:
                audience.append(bar(part.start))
            listeners.interpret(
                interpreter, sound.chunks, audience, notes.tell, sound.stop, notes.end
            )
