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
from dragoman.train.compiled import compile_layers, compiler
from dragoman.train.data.corpus import TrainingSet
from dragoman.train.loop import Training, Watch, unwatched
from dragoman.train.nets.base import Listening, Net, Vocabularies
from dragoman.train.nets.registry import NETS, build
from dragoman.train.prepare import Prepared, describe, feature_statistics, prepare
from dragoman.train.recipe import Machine, Recipe
from dragoman.train.run import RunFolder
from dragoman.train.settings import convert
from dragoman.train.start import located, start, starts_of
from dragoman.train.tasks.base import Task, Words, feature_norm_of, front_of
from dragoman.train.tasks.registry import build_task

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


def check(recipe: Recipe) -> None:
    """Build net and task without memory or data: what is wrong with a recipe is said at once."""
    check_net_settings(recipe.net, recipe.net_settings, "net_settings")
    source, target = recipe.vocabulary.source, recipe.vocabulary.target
    with torch.device("meta"):
        net = make_net(recipe, Vocabularies(target.size, source.size))
        words = Words(*(torch.ones(u.size) if u.suffix else None for u in (source, target)))
    front = front_of(net, recipe.augment, recipe.seed)
    task = build_task(recipe.task, recipe.task_settings, net, front, words)
    if recipe.data.text and not task.reads_text:
        raise DragomanError(
            f"The task '{recipe.task}' does not learn from data.text; only joint does. A net that "
            "translates text is trained with the task mt and text in data.train."
        )
    if recipe.task != "mt" and not net.hears_sound and len(recipe.data.targets) > 1:
        raise DragomanError(
            f"Only the nets text-transformer and moonshine have several targets; name one of "
            f"{', '.join(recipe.data.targets)} as data.target."
        )
    if recipe.data.keep_states:
        check_kept(recipe, net)
    if recipe.machine.compile:
        compiler(recipe.machine.compile)
    if recipe.machine.strategy == "fsdp" and recipe.steps.translate:
        raise DragomanError("A sharded net cannot translate dev items: set steps.translate to 0.")
    taken = [part for before in starts_of(recipe) for part in before.parts]
    for part in (*recipe.freeze, *taken):
        here = part.rpartition(":")[2]
        if not any(f"{name}.".startswith(f"{here}.") for name in net.state_dict()):
            parts = dict.fromkeys(name.partition(".")[0] for name in net.state_dict())
            raise DragomanError(
                f"The net '{recipe.net}' has no part '{here}', which freeze or init_parts names; "
                f"it has {', '.join(parts)}."
            )


def check_kept(recipe: Recipe, net: Net) -> None:
    """States can be kept where nothing that makes them changes."""
    if not isinstance(net, Listening):
        raise DragomanError(
            "data.keep_states keeps what frozen parts of a net hear, which is possible with the "
            "net moonshine: set data.keep_states to false."
        )
    frozen = tuple(f"{part}." for part in recipe.freeze)
    moving = [part for part in net.listens if not f"{part}.".startswith(frozen)]
    if moving:
        raise DragomanError(
            f"data.keep_states keeps what does not change: add {', '.join(moving)} to freeze, or "
            "set data.keep_states to false."
        )
    augment = recipe.augment
    changed = augment.effects or augment.rooms or augment.noise or set(augment.speeds) != {1.0}
    if changed or augment.spec != "none":
        raise DragomanError(
            "data.keep_states hears every sound once, so it cannot sound different every time: set "
            "augment to {spec: none}, and voice with --rooms and --noise instead."
        )


def check_net_settings(net: str, settings: dict[str, Any], where: str) -> None:
    """Keys and types of a net's settings, and of those of the net that it borrows an encoder of."""
    if net not in NETS:
        return  # `build` says so
    config: Any = convert(NETS[net][0], settings, where)
    if hasattr(config, "encoder_settings"):
        check_net_settings(config.encoder, config.encoder_settings, f"{where}.encoder_settings")


def check_paths(recipe: Recipe) -> None:
    """What a run starts from must be there before hours go into its data."""
    units = recipe.vocabulary
    for key, path in (
        ("vocabulary.source.model", units.source.model),
        ("vocabulary.target.model", units.target.model),
        *(("init", before.run) for before in starts_of(recipe)),
    ):
        if path and not located(path).exists():
            raise DragomanError(f"There is no {path}, which the recipe names as {key}.")


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
    if fabric.is_global_zero:
        run.write_json("data.json", data)
        size = sum(parameter.numel() for parameter in net.parameters())
        begin = {"kind": "begin", "total": recipe.steps.total, "net": recipe.net, "size": size}
        watch(begin | data)
    if recipe.machine.compile:
        compile_layers(net, recipe.machine.compile)
    carbon = recipe.machine.carbon and fabric.local_rank == 0  # one meter on every machine
    with Meter(folder, fabric.node_rank) if carbon else nullcontext() as meter:
        training = Training(fabric, recipe, run, task, prepared, watch, meter)
        training.fit()
    fabric.barrier()
    if fabric.is_global_zero:
        finish(run, training.final_weights(), training.state.best_step)
        watch({"kind": "end", "best": training.state.best, "step": training.state.best_step})


def check_kind(recipe: Recipe, prepared: Prepared) -> None:
    """A net that hears needs sound; one that reads uses the texts of any pack."""
    for name, part in (("train", prepared.train), ("dev", prepared.dev)):
        if recipe.task != "mt" and part.silent:
            raise DragomanError(
                f"The net '{recipe.net}' hears speech, and data.{name} is text alone; "
                "give packs with sound, or 'voice:TEXT' to have it spoken."
            )


def make_net(recipe: Recipe, vocabularies: Vocabularies) -> Net:
    """The recipe's net with weights that its seed draws."""
    torch.manual_seed(recipe.seed)
    try:
        return build(recipe.net, recipe.net_settings, vocabularies)
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        raise DragomanError(f"The net_settings do not fit '{recipe.net}': {error}.") from error


def make_task(
    recipe: Recipe, net: Net, prepared: Prepared, run: RunFolder, device: torch.device
) -> Task:
    norm = feature_norm_of(net)
    if norm is not None:
        features = len(norm.mean)
        mean, deviation = feature_statistics(run, prepared.train, features, recipe.seed, device)
        norm.mean.copy_(torch.from_numpy(mean))
        norm.deviation.copy_(torch.from_numpy(deviation))
    front = front_of(net, recipe.augment, recipe.seed)
    start(net, recipe, run)
    task = build_task(recipe.task, recipe.task_settings, net, front, words_of(prepared))
    task.freeze_parts(recipe.freeze)
    check_ends(task, prepared)
    return task


def check_ends(task: Task, prepared: Prepared) -> None:
    """Who learns from true ends of words needs data that knows them."""
    wanted = {"no": (), "train": ("train",), "all": ("train", "dev")}[task.needs_ends]
    for part in wanted:
        data: TrainingSet = getattr(prepared, part)
        if not len(data.word_ends.flat):
            raise DragomanError(
                f"Nothing in data.{part} knows where its {data.data.ends} end, from which this "
                "recipe learns: give packs that were voiced (dragoman voice), or set "
                "task_settings and net_settings so that no ends are needed."
            )


def words_of(prepared: Prepared) -> Words:
    """Which units end words; the source side has the CTC blank as one unit more."""
    source, target = prepared.source.word_ends(extra=1), prepared.target.word_ends()
    return Words(
        None if source is None else torch.tensor(source),
        None if target is None else torch.tensor(target),
    )


def finish(run: RunFolder, paths: list[Path], best: int) -> None:
    """Average the checkpoints around the best into final.pt."""
    weights = {"net": checkpoints.average(paths)}
    write_whole(run.folder / "final.pt", partial(torch.save, weights))
    run.write_json("final.json", {"averaged": [path.name for path in paths], "best_step": best})
