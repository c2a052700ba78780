"""Checkpoints: where to go on, the weights around the best validation, and their average."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric

from dragoman.errors import DragomanError
from dragoman.files import put_in_place, sentences_for
from dragoman.train.foreign import weights_in

Weights = dict[str, torch.Tensor]
KEPT_RESUMES = 2  # the one before is there should the last one be damaged


def save(fabric: Fabric, path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint from all processes; its name appears once it is complete."""
    temporary = path.with_name(f".{path.name}.tmp")  # the same for all of them
    try:
        with sentences_for(path):
            fabric.save(temporary, state)
            fabric.barrier()
            if fabric.is_global_zero:
                put_in_place(temporary, path)
    finally:
        if fabric.is_global_zero:
            temporary.unlink(missing_ok=True)
    fabric.barrier()


def numbered(folder: Path, kind: str) -> list[tuple[int, Path]]:
    """`kind-STEP.pt` files by step; one that somebody has named otherwise is none of ours."""
    named = ((path.stem.removeprefix(f"{kind}-"), path) for path in folder.glob(f"{kind}-*.pt"))
    return sorted((int(step), path) for step, path in named if step.isdecimal())


def path_for(folder: Path, kind: str, step: int) -> Path:
    return folder / f"{kind}-{step:08d}.pt"


def prune_resumes(folder: Path) -> None:
    for _, path in numbered(folder, "resume")[:-KEPT_RESUMES]:
        path.unlink(missing_ok=True)


def around(steps: list[int], best: int, count: int) -> list[int]:
    """Up to `count` steps centred on the best one, moved inwards at the ends."""
    place = steps.index(best)
    first = max(0, min(place - count // 2, len(steps) - count))
    return steps[first : first + count]


def prune_weights(folder: Path, bests: set[int], count: int) -> None:
    """Keep the weights that may still be averaged: around each of the best, and the latest."""
    found = numbered(folder, "weights")
    steps = [step for step, _ in found]
    needed = set(steps[-count:])
    for best in bests & set(steps):
        place = steps.index(best)
        needed.update(steps[max(0, place - count) : place + count])
    for step, path in found:
        if step not in needed:
            path.unlink(missing_ok=True)


def drop_weights_after(folder: Path, step: int) -> None:
    """Remove what an earlier attempt has left of steps that are to be made again, or are not."""
    for number, path in numbered(folder, "weights"):
        if number > step:
            path.unlink(missing_ok=True)


def load_weights(path: Path) -> Weights:
    """The net's weights from a checkpoint of any kind, from a run folder's final one, or from the
    folder of a model."""
    if path.is_dir() and (foreign := weights_in(path)) is not None:
        return foreign
    begun = numbered(path, "weights") if path.is_dir() else []
    if path.is_dir():
        path = path / "final.pt"
    if not path.exists() and begun:
        raise DragomanError(
            f"There is no {path}: the run has not come to its end. Go on with it, or name a "
            f"checkpoint of it, such as {begun[-1][1]} (in 'dragoman export' with --weights)."
        )
    if not path.exists():
        raise DragomanError(f"There are no weights at {path}.")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise DragomanError(f"{path} is not a checkpoint, or a damaged one: {error}.") from error
    weights = state.get("task", state.get("net"))
    if weights is None:
        raise DragomanError(f"{path} holds no net.")
    return {key.removeprefix("net."): value for key, value in weights.items()}


def average(paths: Sequence[Path]) -> Weights:
    """The mean of several checkpoints' weights; counters are taken from the last."""
    last = load_weights(paths[-1])
    total = {key: value.double() for key, value in last.items() if value.is_floating_point()}
    for path in paths[:-1]:
        weights = load_weights(path)
        for key, value in last.items():
            if key not in weights or weights[key].shape != value.shape:
                raise DragomanError(
                    f"{path} and {paths[-1]} are of different nets: they have no mean."
                )
            if key in total:
                total[key] += weights[key].double()
    return {
        key: (total[key] / len(paths)).to(value.dtype) if key in total else value
        for key, value in last.items()
    }


def start_from(net: torch.nn.Module, path: Path, parts: tuple[str, ...]) -> list[str]:
    """Load the weights of another run into a net: all of them, or those of some parts.

    A part that has another name here is written `there:here`, such as `layers:source.layers`.
    Returns the names that were loaded. Weights that do not fit are a sentence.
    """
    chosen = fitting(load_weights(path), net.state_dict(), parts, path)
    net.load_state_dict(chosen, strict=not parts)
    return sorted(chosen)


def fitting(given: Weights, ours: Weights, parts: tuple[str, ...], path: Path) -> Weights:
    """Of the weights given (by `path`) those that are wanted, by the names they have here."""
    chosen = dict(given) if not parts else {}
    for part in parts:
        there, _, here = part.partition(":")
        found = {key: value for key, value in given.items() if f"{key}.".startswith(f"{there}.")}
        if not found:
            has = ", ".join(sorted({key.partition(".")[0] for key in given}))
            raise DragomanError(f"{path} has no part named {there}; it has {has}.")
        chosen |= {(here or there) + key.removeprefix(there): found[key] for key in found}
    for key, value in chosen.items():
        if key not in ours or ours[key].shape != value.shape:
            mine = tuple(ours[key].shape) if key in ours else "nothing"
            raise DragomanError(
                f"The weights of {path} do not fit: '{key}' is {tuple(value.shape)} there and "
                f"{mine} here. Use the same net settings and vocabulary, or name with init_parts "
                "only the parts that are alike."
            )
    return chosen
