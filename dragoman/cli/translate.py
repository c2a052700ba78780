"""`dragoman translate`: a recording or a pipe, interpreted as if it were spoken now."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.captions import CaptionFiles, caption_options
from dragoman.cli.outputs import check_outputs, check_suffix
from dragoman.cli.ranges import MOMENT, PATH, Number
from dragoman.cli.setup_options import read_system, setup_options, show_option
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.listeners import Listener, Report
    from dragoman.voices import Voice

_input = grouped("Input")
_output = grouped("Output")


@click.command(cls=GroupedCommand)
@click.argument("file", metavar="FILE|-")
@setup_options
@_input(
    "--start",
    type=MOMENT,
    metavar="TIME",
    help="Begin here, such as 90 (seconds) or 1:30; captions keep the recording's times.",
)
@_input("--end", type=MOMENT, metavar="TIME", help="Stop here.")  # fmt: skip
@_input("--raw", metavar="FORMAT", help="FILE is plain samples, such as s16le:16000:1.")
@_input("--realtime", is_flag=True, help="Hear the file at the speed it was spoken.")
@show_option
@_output("--json", "as_json", is_flag=True, help="JSON lines instead of text.")
@caption_options
@_output("--trace", type=PATH, metavar="FILE", help="Write what was heard and said, when.")
@_output("--speak", type=PATH, metavar="FILE", help="Speak the translation into a sound file.")
@_output("--mix", type=PATH, metavar="FILE", help="The speaker left, the interpreter right.")
@_output("--duck", type=Number(0, 60), metavar="DB",
         help="How much softer the speaker is under the interpreter in --mix (default 12).",
         )  # fmt: skip
@_output("--voice", metavar="NAME", help="Voice to speak with ('dragoman voices' lists them).")
@_output("--quiet", is_flag=True, help="No progress, no summary.")
def command(
    file: str,
    start: float | None,
    end: float | None,
    raw: str | None,
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
) -> None:
    """Translate speech from FILE, or from standard input (-), while it is being heard.

    Words appear as they become final. By default a file is heard as fast as the machine allows;
    latencies are those of a live speaker all the same. A pipe is live: it is heard as it comes.

    \b
    dragoman translate talk.mp3 --from de > talk.txt
    dragoman translate talk.ogg --from en --to de --captions talk.srt
    dragoman translate talk.wav --speak english.mp3
    arecord -f S16_LE -r 16000 | dragoman translate - --from es
    """
    from dragoman import listeners
    from dragoman.audio.pcm import RawFormat
    from dragoman.audio.source import is_pipe
    from dragoman.cli import printed, told
    from dragoman.cli.notes import open_notes
    from dragoman.cli.progress import audio_progress
    from dragoman.cli.sound import Part, check_fit, open_file, open_interpreter

    dub = Dub(speak, mix, duck, voice)
    dub.check()
    check_outputs([file, options["setup"]], [*captions.paths, trace, speak, mix])
    captions.check({"--speak": speak, "--mix": mix, "--trace": trace})
    format = None if raw is None else RawFormat.parse(raw)
    with ExitStack() as stack:
        enter = stack.enter_context
        notes = enter(open_notes())
        system = read_system(notes.tell, notes.advise, **options)
        setup = system.setup
        before = None
        if captions.resume and start is None and not is_pipe(file):
            before = captions.going_on(setup.target)
        if before is not None:
            before = before.in_pause(file, format)
            start = before.start
        sound = open_file(file, setup.step_ms, realtime, Part(start or 0.0, end, format))
        both = show == "both"
        transcript = both or captions.need_transcript
        narrator = dub.open_voice(setup.target)
        check_fit(system, transcript)
        # First in, last out: the summary comes after the last line of text has been ended, and so
        # does the wait for a voice that needs longer than the talk.
        audience = [] if quiet else [enter(told.summary(setup, notes))]
        spoken = []
        if narrator is not None:
            dubbed = dub.narration(narrator, notes.tell, live=sound.live, quiet=quiet)
            spoken.append(enter(dubbed))
        text = printed.json_lines(both) if as_json else printed.plain_text(setup, notes, both)
        audience.append(enter(text))
        if not quiet:
            audience.append(enter(told.detected(system, notes)))
        if sound.live and not quiet:
            audience.append(enter(told.pressed(setup, notes)))
        audience += map(enter, captions.listeners(setup, start))
        audience += spoken
        record = enter(listeners.traced(trace, file, notes.tell))
        interpreter = open_interpreter(system, record, sound.clock(), transcript)
        if before is not None:
            notes.tell(before.sentence())
            interpreter.recall(before.words)
        hidden = quiet or sound.live
        audience.append(enter(audio_progress(file, start or 0.0, end, hidden=hidden)))
        listeners.interpret(interpreter, sound.chunks, audience, notes.tell, sound.stop)


@dataclass(frozen=True, slots=True)
class Dub:
    """What the options say of the translation that is spoken into files."""

    speak: Path | None
    mix: Path | None
    duck_db: float | None
    voice: str | None

    def check(self) -> None:
        """Refuse options that would change nothing, and names of another kind."""
        from dragoman.audio.write import FORMATS, format_of

        if self.voice is not None and self.speak is None and self.mix is None:
            raise DragomanError(
                "--voice needs something to speak into: --speak FILE or --mix FILE."
            )
        if self.duck_db is not None and self.mix is None:
            raise DragomanError("--duck is about the speaker in a mix; ask for one: --mix FILE.")
        for option, path in (("--speak", self.speak), ("--mix", self.mix)):
            check_suffix(option, path, tuple(FORMATS))
            if path is not None:
                format_of(path)

    def open_voice(self, language: str) -> Voice | None:
        """The voice, if anything is to be spoken."""
        from dragoman.voices import open_voice

        return open_voice(self.voice, language) if self.speak or self.mix else None

    def narration(
        self, voice: Voice, tell: Report, *, live: bool, quiet: bool
    ) -> AbstractContextManager[Listener]:
        from dragoman.audio.mix import DUCK_DB
        from dragoman.listeners import narration

        duck_db = DUCK_DB if self.duck_db is None else self.duck_db
        return narration(self.speak, self.mix, voice, duck_db, tell, live=live, quiet=quiet)
