"""`dragoman translate`: a recording or a pipe, interpreted as if it were spoken now."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from dragoman.cli.app import GroupedCommand
from dragoman.cli.setup_options import grouped, read_setup, setup_options

_input = grouped("Input")
_output = grouped("Output")


@click.command(cls=GroupedCommand)
@click.argument("file", metavar="FILE|-")
@setup_options
@_input("--start", type=float, default=0.0, metavar="SEC", help="Begin here.")
@_input("--end", type=float, metavar="SEC", help="Stop here.")
@_input("--raw", metavar="FORMAT", help="FILE is plain samples, such as s16le:16000:1.")
@_input("--realtime", is_flag=True, help="Hear the file at the speed it was spoken.")
@_output("--json", "as_json", is_flag=True, help="JSON lines instead of text.")
@_output("--captions", type=Path, multiple=True, metavar="FILE", help="Write a .srt or .vtt file.")
@_output("--trace", type=Path, metavar="FILE", help="Write what was heard and said, when.")
@_output("--speak", type=Path, metavar="WAV", help="Speak the translation into a file.")
@_output("--mix", type=Path, metavar="WAV", help="The speaker left, the interpreter right.")
@_output("--voice", metavar="NAME", help="Voice to speak with ('dragoman voices' lists them).")
@_output("--quiet", is_flag=True, help="No progress, no summary.")
def command(
    file: str,
    start: float,
    end: float | None,
    raw: str | None,
    realtime: bool,
    as_json: bool,
    captions: tuple[Path, ...],
    trace: Path | None,
    speak: Path | None,
    mix: Path | None,
    voice: str | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Translate speech from FILE, or from standard input (-), while it is being heard.

    Words appear as they become final. By default a file is heard as fast as the machine allows;
    latencies are those of a live speaker all the same.
    """
    from dragoman import listeners
    from dragoman.audio.pace import paced
    from dragoman.audio.pcm import RawFormat
    from dragoman.audio.source import is_pipe, open_audio
    from dragoman.cli.progress import audio_progress
    from dragoman.clock import RealClock, SimulatedClock
    from dragoman.setup import System

    setup = read_setup(**options)
    format = RawFormat.parse(raw) if raw else None
    chunks = open_audio(file, start=start, end=end, step_ms=setup.step_ms, raw=format)
    live = realtime or is_pipe(file)
    with ExitStack() as stack:
        enter = stack.enter_context
        # The summary comes first in, last out: after the last line of text has been ended.
        audience = [] if quiet else [enter(listeners.summary())]
        audience.append(enter(listeners.json_lines() if as_json else listeners.plain_text()))
        for path in captions:
            audience.append(enter(listeners.captions(path, setup.target)))
        if speak is not None or mix is not None:
            audience.append(enter(listeners.narration(speak, mix, voice, setup.target)))
        record = enter(listeners.traced(trace, file))
        system = System(setup)
        system.model  # noqa: B018  loaded before the clock starts, or it would count as lag
        interpreter = system.interpreter(record, RealClock() if live else SimulatedClock())
        audience.append(enter(audio_progress(file, start, end, hidden=quiet or live)))
        listeners.interpret(interpreter, paced(chunks) if realtime else chunks, audience)
