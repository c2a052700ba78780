"""What a run begins with: weights of other runs, as far as their units are its own."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.store import get
from dragoman.train.checkpoints import start_from
from dragoman.train.nets.base import Net
from dragoman.train.recipe import Recipe, Start
from dragoman.train.run import RunFolder

STORE = "store:"  # what the name of a model of the store begins with


def starts_of(recipe: Recipe) -> list[Start]:
    """The runs that a recipe starts from, each with the parts to take; later ones win."""
    first = [Start(recipe.init, recipe.init_parts)] if recipe.init else []
    return [*first, *recipe.init_more]


def located(name: str) -> Path:
    """Where the weights lie that a recipe names: a run, a checkpoint, or `store:MODEL`."""
    return get(name.removeprefix(STORE)) if name.startswith(STORE) else Path(name)


def start(net: Net, recipe: Recipe, run: RunFolder) -> None:
    """Give a net the weights that its recipe starts from."""
    for before in starts_of(recipe):
        path = located(before.run)
        names = start_from(net, path, before.parts)
        for side, rows in (("source", net.source_rows), ("target", net.target_rows)):
            if any(f"{name}.".startswith(f"{row}.") for name in names for row in rows):
                _check_units(side, path, run)


def _check_units(side: str, before: Path, run: RunFolder) -> None:
    """Rows of embeddings mean nothing under another vocabulary, though they may be as many."""
    theirs = (before if before.is_dir() else before.parent) / f"{side}.model"
    if theirs.exists() and theirs.read_bytes() != (run.folder / f"{side}.model").read_bytes():
        raise DragomanError(
            f"The {side} units of {before} are others than this run's, so its weights for them "
            f"mean nothing here: set vocabulary.{side}.model={theirs}, or name with init_parts "
            "what else to take."
        )
