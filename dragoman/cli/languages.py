"""`dragoman languages`: what can be heard, and what can be spoken."""

from __future__ import annotations

import click

from dragoman.cli.app import GroupedCommand
from dragoman.cli.setup_options import grouped

_output = grouped("Output")


@click.command(cls=GroupedCommand)
@click.argument("search", required=False)
@_output("--json", "as_json", is_flag=True, help="One JSON object: code to name.")
def command(search: str | None, as_json: bool) -> None:
    """List the languages that Whisper hears; all are translated into English.

    SEARCH shows only those whose code or name holds it.
    """
    import json

    from dragoman.errors import DragomanError
    from dragoman.text.languages import HEARD

    wanted = (search or "").casefold()
    found = {
        code: language.name
        for code, language in HEARD.items()
        if not wanted or wanted == code or wanted in language.name.casefold()
    }
    if not found:
        raise DragomanError(f"No language that Whisper hears is called '{search}'.")
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    cells = [f"{code:4}{name}" for code, name in found.items()]
    width = max(map(len, cells)) + 2
    columns = max(1, 80 // width)
    for start in range(0, len(cells), columns):
        click.echo("".join(f"{cell:{width}}" for cell in cells[start : start + columns]).rstrip())
