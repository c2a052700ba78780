"""`dragoman languages`: what a model hears."""

from __future__ import annotations

import sys

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.wrap import USUAL, columns_of

_system = grouped("System")
_output = grouped("Output")


@click.command(cls=GroupedCommand)
@click.argument("search", required=False)
@_system("--model", metavar="NAME", default="whisper-base", help="Which model hears.")
@_output("--json", "as_json", is_flag=True, help="One JSON object: code to name.")
def command(search: str | None, model: str, as_json: bool) -> None:
    """List the languages that a model hears; Whisper translates all of them into English, and by
    way of that a translator behind it.

    SEARCH shows only those whose code or name contains it. 'dragoman models list' says what each
    model translates into.
    """
    import json

    from dragoman.errors import DragomanError

    wanted = (search or "").casefold()
    found = {
        code: name
        for code, name in _heard(model).items()
        if not wanted or wanted == code or wanted in name.casefold()
    }
    if not found:
        raise DragomanError(f"No language that {model} hears is called '{search}'.")
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    longest = max(map(len, found))
    cells = [f"{code:{longest}} {name}" for code, name in found.items()]
    width = max(map(len, cells)) + 2
    columns = max(1, (columns_of(sys.stdout) if sys.stdout.isatty() else USUAL) // width)
    for start in range(0, len(cells), columns):
        click.echo("".join(f"{cell:{width}}" for cell in cells[start : start + columns]).rstrip())


def _heard(model: str) -> dict[str, str]:
    """Codes and names of what a model hears; of a cascade, what its first half does."""
    from pathlib import Path

    from dragoman.errors import DragomanError
    from dragoman.store import catalogue
    from dragoman.store.kinds import kind_of
    from dragoman.text.languages import LANGUAGES

    name = model if Path(model).exists() else model.partition("+")[0]
    folder = Path(name).expanduser()
    if folder.is_dir():
        kind = kind_of(folder)
        codes = kind.languages if kind else ()
    else:
        codes = catalogue.model(name).languages
    if not codes or codes == ("mul",):
        raise DragomanError(f"{model} does not say which languages it hears.")
    return {code: LANGUAGES[code].name if code in LANGUAGES else code for code in codes}
