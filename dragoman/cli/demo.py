"""`dragoman demo`: a recording, interpreted while it plays: source, translation and lag."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import click

from dragoman.audio.chunk import Chunk
from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.ranges import THREADS
from dragoman.interpreter import Update
from dragoman.listeners import Listener
from dragoman.setup import Setup

_demo = grouped("Demo")
TALKS = Path(__file__).parents[1] / "talks"


@dataclass(frozen=True, slots=True)
class Demo:
    """A recording of `talks/`: NAME.ogg, and in NAME.json what is said in it until which second."""

    talk: str
    setup: Setup
    title: str

    def headline(self, model: str) -> str:
        """What stands above it while it runs; a usual terminal has 80 columns."""
        return f"{self.title} · {model} · a recording as it plays"


DEMOS = {
    "de-en": Demo("weather.de", Setup(source="de").tuned(2000.0), "German → English"),
    "en-de": Demo("report.en", Setup(source="en", target="de").tuned(2000.0), "English → German"),
}

ADVICE = "'dragoman check' finds a setting with which it keeps up."
"""The demo has no settings."""


@click.command(cls=GroupedCommand)
@click.argument("pair", default="de-en", type=click.Choice(list(DEMOS)))
@_demo("--fast", is_flag=True, help="Do not wait for the speaker.")
@_demo("--speak", is_flag=True, help="Speak the translation aloud.")
@_demo(
    "--threads",
    type=THREADS,
    default=0,
    show_default=False,
    metavar="N",
    help="Threads of the model (default: all).",
)
def command(pair: str, fast: bool, speak: bool, threads: int) -> None:
    """Interpret a recording into another language while it plays.

    Above, what is spoken; below, its translation, and how far behind the speaker it is. The first
    run fetches the model (Whisper base, 148 MB).
    """
    from dragoman import listeners
    from dragoman.cli import told
    from dragoman.cli.live import shown
    from dragoman.cli.notes import open_notes
    from dragoman.cli.sound import open_file
    from dragoman.setup import System

    demo = DEMOS[pair]
    setup = demo.setup.with_changes(threads=threads)
    system = System(setup)
    system.model  # noqa: B018  loaded before the speaker begins
    sound = open_file(TALKS / f"{demo.talk}.ogg", setup.step_ms, realtime=not fast)
    with ExitStack() as stack:
        notes = stack.enter_context(open_notes())
        audience = [stack.enter_context(told.summary(setup, notes, ADVICE))]
        if speak:
            voice = listeners.spoken(None, setup.target, notes.tell)
            audience.append(stack.enter_context(voice))
        title = demo.headline(system.setup.model)
        views = shown(stack, setup, notes, both=True, title=title)
        audience.append(_Known(demo.talk, views))
        listeners.interpret(
            system.interpreter(clock=sound.clock()),
            *(sound.chunks, audience, notes.tell, sound.stop, notes.end),
        )
    click.echo(
        "\nYour own:  dragoman translate talk.mp3    dragoman live    dragoman check", err=True
    )


class _Known:
    """Shows what is spoken when it is: in a recording of ours that is known."""

    def __init__(self, talk: str, views: list[Listener]) -> None:
        rows = json.loads((TALKS / f"{talk}.json").read_text(encoding="utf-8"))
        self._rows = [(float(end), str(text)) for end, text in rows]
        self._views = views

    def take(self, chunk: Chunk, update: Update) -> None:
        due = [text for end, text in self._rows if end <= update.hearing.audio_ms / 1000]
        self._rows = self._rows[len(due) :]
        update = replace(update, transcript=tuple(f" {text}" for text in due))
        for view in self._views:
            view.take(chunk, update)
