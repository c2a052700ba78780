"""`dragoman voices`: which voices there are, and how they sound."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dragoman.cli.app import GroupedCommand, InOrder
from dragoman.cli.ranges import PATH, Number
from dragoman.cli.tables import Column, open_console, print_rows
from dragoman.cli.wrap import fitted
from dragoman.errors import DragomanError
from dragoman.text.languages import find_language
from dragoman.voices import VOICES, open_voice
from dragoman.voices.registry import Offer


def _list_options(function: Callable[..., None]) -> Callable[..., None]:
    """Which voices are listed, and how."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="As JSON."),
        click.option(
            "--language", "-l", metavar="CODE", help="Only voices that speak this language."
        ),
    ):
        function = option(function)
    return function


@click.group(cls=InOrder, invoke_without_command=True)
@_list_options
@click.pass_context
def command(ctx: click.Context, language: str | None, as_json: bool) -> None:
    """List the voices, or hear one: dragoman voices say "Good morning." out.wav

    A Piper voice is named by its path. Several speakers of one voice are told apart by a colon:
    kokoro:af_bella, espeak:en-gb+f3, elevenlabs:VOICE_ID, anna.onnx:SPEAKER.
    """
    if ctx.invoked_subcommand is None:
        _list(language, as_json)


@command.command("list", short_help="List the voices.")
@_list_options
def list_voices(language: str | None, as_json: bool) -> None:
    """List the voices, with their licences, and what is to be done for those not ready."""
    _list(language, as_json)


def _list(language: str | None, as_json: bool) -> None:
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
    """What there is, and below it what is to be done for those that are not ready."""
    console = open_console()
    titles = ("name", "languages", "licence", "ready", "what it is")
    print_rows(console, [Column(title, words=True) for title in titles], [_cells(r) for r in rows])
    wishes = {row["name"]: row["to_do"] for row in rows if not row["ready"]}
    if wishes:
        print("\nTo get the others:")
    longest = max(map(len, wishes), default=0)
    for name, wish in wishes.items():
        print(fitted(f"  {name:{longest}}  {wish}", sys.stdout, longest + 4))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    codes = row["languages"]
    shown = " ".join(codes) if len(codes) <= 8 else f"{len(codes)} languages"
    return row["name"], shown, row["licence"], "yes" if row["ready"] else "-", row["about"]


@command.command(cls=GroupedCommand, short_help="Speak a text into a file.")
@click.argument("text")
@click.argument("out", type=PATH)
@click.option("--language", "-l", default="en", show_default=True,
              metavar="CODE", help="The language of the text.")  # fmt: skip
@click.option("--voice", metavar="NAME",
              help="A voice of the list or a Piper file (default: the best that is ready).",
              )  # fmt: skip
@click.option("--speed", type=Number(0.5, 2.0), default=1.0, metavar="N",
              show_default=True, help="How fast to speak.")  # fmt: skip
def say(text: str, out: Path, language: str, voice: str | None, speed: float) -> None:
    """Speak TEXT (- reads standard input) into the file OUT (.wav, .flac, .mp3, .ogg or .opus)."""
    from dragoman.audio.write import format_of, write_sound
    from dragoman.cli.outputs import check_outputs
    from dragoman.voices.base import is_speakable, sound_of

    format_of(out)
    check_outputs([], [out])
    text = _text(text)
    if not is_speakable(text):
        raise DragomanError("There is nothing to say: the text has no letter and no digit.")
    opened = open_voice(voice, find_language(language).code)
    sound = sound_of(opened, text, speed)
    write_sound(out, sound, opened.rate)
    print(f"{out}: {len(sound) / opened.rate:.1f} s, spoken by {opened.name}")


def _text(given: str) -> str:
    """What is to be said, or what standard input says in its place."""
    try:
        if given == "-":
            given = "" if sys.stdin is None else sys.stdin.read()
        given.encode()
    except UnicodeError:  # bytes that are no letters, in whichever way Python took them
        raise DragomanError("The text is not UTF-8; convert it first.") from None
    return given
