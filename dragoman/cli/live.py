"""`dragoman live`: the microphone, interpreted, with captions in the terminal."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from dragoman.cli.app import GroupedCommand
from dragoman.cli.setup_options import grouped, read_setup, setup_options
from dragoman.errors import DragomanError

_input = grouped("Input")
_output = grouped("Output")
# A silence this long ends an utterance: all of it is said, whatever the policy.
PAUSE_MS = 800.0


@click.command(cls=GroupedCommand)
@setup_options
@_input("--microphone", metavar="NAME|N", help="Which microphone (default: the system's).")
@_input("--list", "list_only", is_flag=True, help="List the microphones and stop.")
@_input("--file", "file", type=Path, metavar="FILE", help="Play this file as if it were spoken.")
@_output("--speak", is_flag=True, help="Speak the translation aloud.")
@_output("--voice", metavar="NAME", help="Voice to speak with ('dragoman voices' lists them).")
@_output("--captions", type=Path, multiple=True, metavar="FILE", help="Write a .srt or .vtt file.")
@_output("--trace", type=Path, metavar="FILE", help="Write what was heard and said, when.")
@_output("--json", "as_json", is_flag=True, help="JSON lines instead of the caption screen.")
def command(
    microphone: str | None,
    list_only: bool,
    file: Path | None,
    speak: bool,
    voice: str | None,
    captions: tuple[Path, ...],
    trace: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Interpret the microphone until Ctrl-C.

    Final words are shown plainly, words that may still change dimly. Ctrl-C ends the talk: the
    rest is said and every file is complete.
    """
    from dragoman import listeners
    from dragoman.cli.screen import captions_screen
    from dragoman.clock import RealClock
    from dragoman.setup import System

    if list_only:
        _list_microphones()
        return
    setup = read_setup(**options)
    if setup.utterance_pause_ms is None:
        setup = setup.with_changes(utterance_pause_ms=PAUSE_MS)
    system = System(setup)
    click.echo(f"Loading {setup.model} …", err=True)
    system.model  # noqa: B018  loaded before the microphone opens, or its first words would wait
    with ExitStack() as stack:
        enter = stack.enter_context
        audience = [enter(listeners.json_lines() if as_json else captions_screen(setup))]
        for path in captions:
            audience.append(enter(listeners.captions(path, setup.target)))
        if speak:
            audience.append(enter(listeners.spoken(voice, setup.target)))
        audience.append(enter(listeners.summary()))
        record = enter(listeners.traced(trace, str(file or "microphone")))
        source, stop = _source(file, microphone, setup.step_ms)
        interpreter = system.interpreter(record, RealClock())
        listeners.interpret(interpreter, source, audience, stop)


def _source(file: Path | None, microphone: str | None, step_ms: float) -> Any:
    """The chunks, and how to end them."""
    from dragoman.audio.microphone import Microphone
    from dragoman.audio.pace import paced
    from dragoman.audio.source import open_audio

    if file is not None:
        if microphone is not None:
            raise DragomanError("--file and --microphone exclude each other.")
        return paced(open_audio(file, step_ms=step_ms)), None
    wanted = int(microphone) if microphone and microphone.isdigit() else microphone
    source = Microphone(wanted, step_ms)
    return source.chunks(), source.stop


def _list_microphones() -> None:
    from dragoman.audio.devices import list_devices

    devices = list_devices("input")
    if not devices:
        raise DragomanError("There is no microphone.")
    for device in devices:
        mark = "  (default)" if device.default else ""
        click.echo(f"{device.index:3}  {device.name}{mark}")
