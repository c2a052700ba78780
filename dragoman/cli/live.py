"""`dragoman live`: the microphone, interpreted, with captions in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.captions import CaptionFiles, caption_options
from dragoman.cli.hearing import Hearing, hearing_options
from dragoman.cli.outputs import check_outputs, check_suffix
from dragoman.cli.ranges import PATH
from dragoman.cli.setup_options import (
    LIVE_PAUSE_MS,
    auto_is_left,
    read_system,
    setup_options,
    show_option,
)
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.cli.notes import Notes
    from dragoman.cli.sound import Sound
    from dragoman.listeners import Listener
    from dragoman.setup import Setup

_input = grouped("Input")
_output = grouped("Output")


@click.command(cls=GroupedCommand)
@click.argument("played", metavar="[FILE]", type=PATH, required=False)
@setup_options
@_input("--microphone", metavar="NAME|N", help="Which microphone (default: the system's).")
@_input("--list", "list_only", is_flag=True, help="List the microphones and stop.")
@_input("--file", type=PATH, metavar="FILE", help="The same as FILE.")
@hearing_options
@_output("--speak", is_flag=True, help="Speak the translation aloud.")
@_output("--voice", metavar="NAME", help="Voice to speak with ('dragoman voices' lists them).")
@caption_options
@_output(
    "--record", type=PATH, metavar="FILE", help="Keep what the microphone hears: a .flac or .wav."
)
@_output("--trace", type=PATH, metavar="FILE", help="Write what was heard and said, when.")
@show_option
@_output("--json", "as_json", is_flag=True, help="JSON lines instead of the caption screen.")
def command(
    played: Path | None,
    microphone: str | None,
    list_only: bool,
    file: Path | None,
    hearing: Hearing,
    speak: bool,
    voice: str | None,
    captions: CaptionFiles,
    record: Path | None,
    trace: Path | None,
    show: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Interpret the microphone until Ctrl-C, or FILE as if it were spoken now.

    Final words are shown plainly, words that may still change dimly. Ctrl-C ends the talk: the
    rest is said, every file is complete, and the whole text stays in the terminal.

    \b
    dragoman live --from de                       # German into English
    dragoman live --from en --to de --show both   # both languages
    dragoman live --from fr --speak --record talk.flac
    dragoman live talk.mp3 --from de              # a recording as it plays
    """
    from dragoman import listeners
    from dragoman.audio.record import SUFFIXES, check_record
    from dragoman.cli import printed, told
    from dragoman.cli.notes import open_notes
    from dragoman.cli.sound import check_fit, open_file, open_interpreter

    if list_only:
        _list_microphones()
        return
    if voice is not None and not speak:
        raise DragomanError("--voice chooses who speaks; ask for speech with --speak.")
    if played is not None and file is not None:
        raise DragomanError(f"{played} and {file} cannot both be heard; name one of them.")
    file = played or file
    if file is not None and (microphone is not None or record is not None):
        raise DragomanError("A file needs no microphone: leave out --microphone and --record.")
    if file is None and hearing.option is not None:
        raise DragomanError(f"{hearing.option} is about a recording: name one, or leave it out.")
    if file is not None and captions.resume:  # which would be heard from its beginning
        raise DragomanError(
            "--resume goes on with what a microphone hears; with a recording by "
            "'dragoman translate FILE --realtime --resume'."
        )
    check_suffix("--record", record, SUFFIXES)
    if record is not None:
        check_record(record)
    check_outputs([file, options["setup"]], [*captions.paths, trace, record])
    captions.check({"--trace": trace})
    if file is None:
        _check_microphone(microphone)
    with ExitStack() as stack:
        enter = stack.enter_context
        notes = enter(open_notes())
        system = read_system(notes.tell, notes.advise, pause_ms=LIVE_PAUSE_MS, **options)
        setup, both = system.setup, show == "both"
        transcript = both or captions.need_transcript
        sound = None
        if file is not None:
            sound = open_file(file, setup.step_ms, realtime=True, part=hearing.part())
        advice = told.slow_advice(setup, auto=auto_is_left(options))
        audience = [enter(told.summary(setup, notes, advice))]
        if speak:
            audience.append(enter(listeners.spoken(voice, setup.target, notes.tell)))
        notes.tell(f"Loading {setup.model} …")
        check_fit(system, transcript)  # before the microphone opens: its words cannot wait
        audience += map(enter, captions.listeners(setup))
        trace_record = enter(listeners.traced(trace, str(file or "microphone"), notes.tell))
        sound = sound or enter(_open_microphone(microphone, setup, record, notes))
        audience.append(enter(told.detected(system, notes, transcript)))
        audience.append(enter(told.pressed(setup, notes, advice)))
        if as_json:
            audience.append(enter(printed.json_lines(both)))
        else:
            audience += shown(stack, setup, notes, both)
        interpreter = open_interpreter(system, trace_record, sound.clock(), transcript)
        listeners.interpret(interpreter, sound.chunks, audience, notes.tell, sound.stop, notes.end)


def shown(
    stack: ExitStack, setup: Setup, notes: Notes, both: bool, title: str = ""
) -> list[Listener]:
    """The caption screen where there is a terminal, the text on standard output in any case."""
    from dragoman.cli.printed import plain_text, text_afterwards
    from dragoman.cli.screen import caption_screen, has_screen

    if not has_screen():
        return [stack.enter_context(plain_text(setup, notes, both))]
    hidden = sys.stdout.isatty()  # behind the screen, until that is gone
    printer = text_afterwards(setup, both) if hidden else plain_text(setup, notes, both)
    text = stack.enter_context(printer)
    return [text, stack.enter_context(caption_screen(setup, notes, title))]


@contextmanager
def _open_microphone(
    wanted: str | None, setup: Setup, record: Path | None, notes: Notes
) -> Iterator[Sound]:
    from dragoman.audio.record import recorded
    from dragoman.cli.sound import open_microphone

    sound = open_microphone(wanted, setup.step_ms)
    if record is None or sound.stop is None:
        yield sound
        return
    with recorded(record, sound.chunks, sound.stop, notes.tell) as chunks:
        yield replace(sound, chunks=chunks)


def _check_microphone(wanted: str | None) -> None:
    """What is wrong with it is told before a model is loaded."""
    from dragoman.audio.devices import choose_device

    choose_device("input", wanted)


def _list_microphones() -> None:
    from dragoman.audio.devices import list_devices

    devices = list_devices("input")
    if not devices:
        raise DragomanError("There is no microphone; plug one in, or name a recording.")
    for device in devices:
        mark = "  (default)" if device.default else ""
        click.echo(f"{device.index:3}  {device.name}{mark}")
