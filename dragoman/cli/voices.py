"""`dragoman voices`: which voices there are, and how they sound."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from dragoman.cli.app import GroupedCommand, GroupedOption
from dragoman.cli.ranges import Number
from dragoman.text.languages import find_language
from dragoman.voices import VOICES, open_voice
from dragoman.voices.registry import Offer


@click.group(invoke_without_command=True)
@click.option("--language", "-l", metavar="CODE", help="Only voices that speak this language.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def command(ctx: click.Context, language: str | None, as_json: bool) -> None:
    """List the voices, or hear one: dragoman voices say "Good morning." out.wav

    A Piper voice is named by its path. Several speakers of one voice are told apart by a colon:
    kokoro:af_bella, espeak:en-gb+f3, elevenlabs:VOICE_ID, anna.onnx:SPEAKER.
    """
    if ctx.invoked_subcommand is None:
        code = find_language(language).code if language else None
        rows = [_row(name, offer, code) for name, offer in VOICES.items()]
        rows = [row for row in rows if code is None or code in row["languages"]]
        if as_json:
            print(json.dumps(rows, indent=2))
        else:
            _print_table(rows)


def _row(name: str, offer: Offer, language: str | None) -> dict[str, Any]:
    languages = offer.languages()
    wish = offer.missing(language or (languages[0] if languages else ""))
    return {
        "name": name,
        "about": offer.about,
        "languages": list(languages),
        "licence": offer.licence,
        "ready": wish is None,
        "to_do": wish,
    }


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("name", "languages", "licence", "what it is", "ready"):
        table.add_column(title, no_wrap=title in ("name", "licence"), overflow="fold")
    for row in rows:
        codes = row["languages"]
        shown = " ".join(codes) if len(codes) <= 8 else f"{len(codes)} languages"
        ready = "yes" if row["ready"] else row["to_do"]
        cells = (row["name"], shown, row["licence"], row["about"], ready)
        table.add_row(*map(escape, cells))  # 'dragoman[espeak]' is not markup
    Console().print(table)


@command.command(cls=GroupedCommand)
@click.argument("text")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--language", "-l", cls=GroupedOption, default="en", show_default=True,
              metavar="CODE", help="The language of the text.")  # fmt: skip
@click.option("--voice", cls=GroupedOption, metavar="NAME",
              help="A voice of the list or a Piper file  [default: the best that is ready]",
              )  # fmt: skip
@click.option("--speed", cls=GroupedOption, type=Number(0.5, 2.0), default=1.0,
              show_default=True, help="How fast to speak.")  # fmt: skip
def say(text: str, out: Path, language: str, voice: str | None, speed: float) -> None:
    """Speak TEXT (- reads standard input) into the file OUT (.wav, .flac, .mp3, .ogg or .opus)."""
    from dragoman.audio.write import write_sound

    if text == "-":
        text = sys.stdin.read()
    opened = open_voice(voice, find_language(language).code)
    sound = opened.speak(text, speed)
    write_sound(out, sound, opened.rate)
    print(f"{out}: {len(sound) / opened.rate:.1f} s, spoken by {opened.name}")
