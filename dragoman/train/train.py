"""`dragoman train` as a function: from a recipe to a run folder with final weights."""

from __future__ import annotations

import os
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies import STRATEGY_REGISTRY
from lightning.fabric.utilities.exceptions import MisconfigurationException

from dragoman.errors import DragomanError
from dragoman.files import write_whole
from dragoman.train import checkpoints
from dragoman.train.carbon import Meter
from dragoman.train.check import check, check_ends, check_kind, check_paths
from dragoman.train.compiled import compile_layers
from dragoman.train.loop import Training, Watch, unwatched
from dragoman.train.make import make_net, make_task
from dragoman.train.nets.base import Vocabularies
from dragoman.train.prepare import describe, prepare
from dragoman.train.recipe import Machine, Recipe
from dragoman.train.run import RunFolder
from dragoman.train.state import State

# How long processes wait for another one: the first may be packing a corpus, or translating.
PATIENCE = timedelta(days=2)


def train(recipe: Recipe, folder: Path, watch: Watch = unwatched) -> None:
    """Run a recipe to its end; a folder with an unfinished run is gone on with."""
    check(recipe)
    check_paths(recipe)
    fabric = fabric_for(recipe.machine)
    # A partial, because Lightning takes apart the arguments it is given.
    work = partial(train_here, recipe=recipe, folder=folder, watch=watch)
    try:
        fabric.launch(work)
    except RuntimeError as error:
        if not lost_company(error):
            raise
        raise DragomanError(
            "Another process of this run has ended, so this one cannot go on; see what it said. "
            "The same command goes on from the last checkpoint."
        ) from error


def lost_company(error: RuntimeError) -> bool:
    """Whether an error is what torch says when another process is gone; gloo's has no class."""
    return isinstance(error, torch.distributed.DistError) or "gloo" in str(error)


def fabric_for(machine: Machine) -> Fabric:
    """Lightning on the devices of the settings; what is not there is a sentence."""
    try:
        return Fabric(
            accelerator=machine.accelerator,
            devices=machine.devices,
            num_nodes=machine.nodes,
            strategy=strategy_of(machine),
            precision=machine.precision,
        )
    except (ValueError, TypeError, RuntimeError, MisconfigurationException) as error:
        raise DragomanError(f"The machine settings do not fit this machine: {error}") from error


def strategy_of(machine: Machine) -> Any:
    """Lightning's strategy of a name, patient; sharded nets are still saved as one file."""
    several = machine.nodes > 1 or (isinstance(machine.devices, int) and machine.devices > 1)
    name = "ddp" if machine.strategy == "auto" and several else machine.strategy
    if not name.startswith(("ddp", "fsdp")) or name not in STRATEGY_REGISTRY:
        return name
    entry = STRATEGY_REGISTRY[name]
    more = {"state_dict_type": "full"} if name.startswith("fsdp") else {}
    return entry["strategy"](**entry["init_params"], **more, timeout=PATIENCE)


def train_here(fabric: Fabric, recipe: Recipe, folder: Path, watch: Watch) -> None:
    """The work of one process."""
    run = RunFolder(folder)
    with run.held() if fabric.is_global_zero else nullcontext():
        train_in(run, fabric, recipe, watch)


def train_in(run: RunFolder, fabric: Fabric, recipe: Recipe, watch: Watch) -> None:
    folder = run.folder
    if fabric.is_global_zero:
        resumed = run.open(recipe)
        watch({"kind": "note", "text": f"{'going on with' if resumed else 'new run'} {folder}"})
    fabric.barrier()

    def tell(text: str) -> None:
        if fabric.is_global_zero:
            watch({"kind": "preparing", "text": text})

    with fabric.rank_zero_first():
        prepared = prepare(recipe, run, os.cpu_count() or 1, tell)
        data = describe(prepared, run)
        run.check_data(data)
        check_kind(recipe, prepared)
        tell("measuring features")
        net = make_net(recipe, Vocabularies(len(prepared.target), len(prepared.source)))
        task = make_task(recipe, net, prepared, run, fabric.device)
        check_ends(task, prepared)
    if fabric.is_global_zero:
        run.write_json("data.json", data)
        size = sum(parameter.numel() for parameter in net.parameters())
        begin = {"kind": "begin", "total": recipe.steps.total, "net": recipe.net, "size": size}
        watch(begin | data)
    if recipe.machine.compile:
        compile_layers(net, recipe.machine.compile, dynamic=bool(task.host_decisions()))
    carbon = recipe.machine.carbon and fabric.local_rank == 0  # one meter on every machine
    with Meter(folder, fabric.node_rank) if carbon else nullcontext() as meter:
        training = Training(fabric, recipe, run, task, prepared, watch, meter)
        training.fit()
    fabric.barrier()
    if fabric.is_global_zero:
        finish(run, training.final_weights(), training.state)
        watch({"kind": "end"} | best_of(training.state))


def best_of(state: State) -> dict[str, Any]:
    return {"best": state.best, "best_by": state.best_by, "best_step": state.best_step}


def finish(run: RunFolder, paths: list[Path], state: State) -> None:
    """Average the checkpoints around the best into final.pt."""
    weights = {"net": checkpoints.average(paths)}
    write_whole(run.folder / "final.pt", partial(torch.save, weights))
    run.write_json("final.json", {"averaged": [path.name for path in paths]} | best_of(state))
