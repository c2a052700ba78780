"""`dragoman demo`: a real recording, interpreted while it plays."""

from __future__ import annotations

from contextlib import ExitStack

import click

from dragoman.cli.app import GroupedCommand
from dragoman.cli.setup_options import grouped

_demo = grouped("Demo")
RECORDING = "demo-de"


@click.command(cls=GroupedCommand)
@_demo("--fast", is_flag=True, help="Do not wait for the speaker.")
@_demo("--speak", is_flag=True, help="Speak the translation aloud.")
@_demo("--threads", type=int, default=0, help="Threads of the model (default: all).")
def command(fast: bool, speak: bool, threads: int) -> None:
    """Interpret a bundled German recording into English while it plays.

    The first run fetches Whisper base (148 MB) and the recording.
    """
    from dragoman import listeners
    from dragoman.audio.pace import paced
    from dragoman.audio.source import open_audio
    from dragoman.cli.screen import captions_screen
    from dragoman.clock import RealClock, SimulatedClock
    from dragoman.setup import Setup, System
    from dragoman.store import get

    setup = Setup(source="de", threads=threads).tuned(2000.0)
    system = System(setup)
    recording = get(RECORDING) / "proverb.wav"
    system.model  # noqa: B018  loaded before the speaker begins
    click.echo("A German speaker, interpreted into English as the recording plays:\n", err=True)
    chunks = open_audio(recording, step_ms=setup.step_ms)
    with ExitStack() as stack:
        audience = [stack.enter_context(captions_screen(setup))]
        if speak:
            audience.append(stack.enter_context(listeners.spoken(None, setup.target)))
        audience.append(stack.enter_context(listeners.summary()))
        interpreter = system.interpreter(clock=SimulatedClock() if fast else RealClock())
        listeners.interpret(interpreter, chunks if fast else paced(chunks), audience)
    click.echo("\nYour own:  dragoman translate talk.mp3 --from de    dragoman live", err=True)
