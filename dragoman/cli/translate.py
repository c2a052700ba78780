"""`dragoman translate`: a recording or a pipe, interpreted as if it were spoken now."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from dragoman.cli.app import GroupedCommand
from dragoman.cli.captions import caption_files, caption_options, check_captions, going_on
from dragoman.cli.outputs import check_outputs, check_suffix
from dragoman.cli.ranges import MOMENT, Number
from dragoman.cli.setup_options import grouped, read_system, setup_options, show_option
from dragoman.errors import DragomanError

_input = grouped("Input")
_output = grouped("Output")
_FILE = click.Path(path_type=Path)


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
@_output("--trace", type=_FILE, metavar="FILE", help="Write what was heard and said, when.")
@_output("--speak", type=_FILE, metavar="FILE", help="Speak the translation into a sound file.")
@_output("--mix", type=_FILE, metavar="FILE", help="The speaker left, the interpreter right.")
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
    captions: tuple[Path, ...],
    captions_source: Path | None,
    captions_both: Path | None,
    resume: bool,
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
    from dragoman.audio.mix import DUCK_DB
    from dragoman.audio.pcm import RawFormat
    from dragoman.audio.source import is_pipe
    from dragoman.audio.write import FORMATS
    from dragoman.cli import printed, told
    from dragoman.cli.notes import open_notes
    from dragoman.cli.progress import audio_progress
    from dragoman.cli.sound import Part, check_fit, open_file, open_interpreter
    from dragoman.voices import open_voice

    if voice is not None and speak is None and mix is None:
        raise DragomanError("--voice needs something to speak into: --speak FILE or --mix FILE.")
    if duck is not None and mix is None:
        raise DragomanError("--duck is about the speaker in a mix; ask for one: --mix FILE.")
    for option, path in (("--speak", speak), ("--mix", mix)):
        check_suffix(option, path, tuple(FORMATS))
    texts = [*captions, captions_source, captions_both]
    check_outputs([file, options["setup"]], [*texts, trace, speak, mix])
    others = {"--speak": speak, "--mix": mix, "--trace": trace}
    check_captions(captions, captions_source, captions_both, resume, others)
    format = None if raw is None else RawFormat.parse(raw)
    with ExitStack() as stack:
        enter = stack.enter_context
        notes = enter(open_notes())
        system = read_system(notes.tell, notes.advise, **options)
        setup = system.setup
        before = None
        if resume and start is None and not is_pipe(file):
            before = going_on(captions, (captions_both, captions_source), setup.target)
        start = before.start if before else start
        sound = open_file(file, setup.step_ms, realtime, Part(start or 0.0, end, format))
        both = show == "both"
        in_source = bool(captions_source or captions_both)
        narrator = open_voice(voice, setup.target) if speak or mix else None
        check_fit(system, both or in_source)
        # First in, last out: the summary comes after the last line of text has been ended, and so
        # does the wait for a voice that needs longer than the talk.
        audience = [] if quiet else [enter(told.summary(setup, notes))]
        spoken = []
        if narrator is not None:
            duck = DUCK_DB if duck is None else duck
            tell = None if quiet else notes.tell
            dub = listeners.narration(speak, mix, narrator, duck, tell, live=sound.live)
            spoken.append(enter(dub))
        text = printed.json_lines(both) if as_json else printed.plain_text(setup, notes, both)
        audience.append(enter(text))
        if not quiet:
            audience.append(enter(told.detected(setup, notes)))
        if sound.live and not quiet:
            audience.append(enter(told.pressed(setup, notes)))
        for listener in caption_files(
            setup, captions, captions_source, captions_both, resume, start
        ):
            audience.append(enter(listener))
        audience += spoken
        record = enter(listeners.traced(trace, file, notes.tell))
        interpreter = open_interpreter(system, record, sound.clock(), both or in_source)
        if before is not None:
            notes.tell(before.sentence())
            interpreter.recall(before.words)
        hidden = quiet or sound.live
        audience.append(enter(audio_progress(file, start or 0.0, end, hidden=hidden)))
        listeners.interpret(interpreter, sound.chunks, audience, notes.tell, sound.stop)
