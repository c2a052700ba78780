"""`dragoman translate`: a recording or a pipe, interpreted as if it were spoken now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
@_output("--json", "as_json", is_flag=True, help="One JSON object per word instead of text.")
@_output("--srt", type=Path, metavar="FILE", help="Write captions.")
@_output("--vtt", type=Path, metavar="FILE", help="Write captions.")
@_output("--trace", type=Path, metavar="FILE", help="Write what was heard and said, when.")
@_output("--speak", type=Path, metavar="WAV", help="Speak the translation into a file.")
@_output("--mix", type=Path, metavar="WAV", help="Speaker left, interpreter right.")
@_output("--voice", metavar="NAME", help="Voice to speak with (see 'dragoman voices').")
@_output("--quiet", is_flag=True, help="No progress, no summary.")
def command(
    file: str,
    start: float,
    end: float | None,
    raw: str | None,
    realtime: bool,
    as_json: bool,
    srt: Path | None,
    vtt: Path | None,
    trace: Path | None,
    speak: Path | None,
    mix: Path | None,
    voice: str | None,
    quiet: bool,
    **system: Any,
) -> None:
    """Translate speech from FILE, or from standard input (-), while it is being heard.

    Words appear as they become final. By default the file is heard as fast as the machine allows;
    latencies are those of a live speaker all the same.
    """
    from dragoman.audio.pace import paced
    from dragoman.audio.pcm import RawFormat
    from dragoman.audio.source import open_audio
    from dragoman.cli.listeners import JsonLines, Listener, PlainText, captions, narration, traced
    from dragoman.clock import RealClock, SimulatedClock
    from dragoman.setup import System

    setup = read_setup(**system)
    chunks: Iterable[Any] = open_audio(
        file, start=start, end=end, step_ms=setup.step_ms, raw=raw and RawFormat.parse(raw) or None
    )
    if realtime:
        chunks = paced(chunks)
    with ExitStack() as stack:
        listeners: list[Listener] = [stack.enter_context(JsonLines() if as_json else PlainText())]
        for path, kind in ((srt, "srt"), (vtt, "vtt")):
            if path is not None:
                listeners.append(stack.enter_context(captions(path, kind)))
        if speak is not None or mix is not None:
            listeners.append(stack.enter_context(narration(speak, mix, voice, setup.target)))
        record = stack.enter_context(traced(trace, file))
        loaded = System(setup)
        interpreter = loaded.interpreter(record, RealClock() if realtime else SimulatedClock())
        with _progress(file, start, end, quiet or realtime) as advance:
            for chunk in chunks:
                update = interpreter.hear(chunk)
                for listener in listeners:
                    listener.take(chunk, update)
                advance(chunk.seconds)
