"""What can be wrong with a recipe, said before hours go into it."""

from __future__ import annotations

import torch

from dragoman.errors import DragomanError
from dragoman.train.compiled import compiler
from dragoman.train.data.corpus import TrainingSet
from dragoman.train.make import make_net
from dragoman.train.nets.base import Listening, Net, Vocabularies
from dragoman.train.prepare import Prepared
from dragoman.train.recipe import Recipe
from dragoman.train.start import located, starts_of
from dragoman.train.tasks.base import Task, Words, front_of
from dragoman.train.tasks.registry import build_task


def check(recipe: Recipe) -> None:
    """Build net and task without memory or data: what is wrong with a recipe is said at once."""
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
            "Only the nets text-transformer, moonshine and grafted have several targets; name one "
            f"of {', '.join(recipe.data.targets)} as data.target."
        )
    if recipe.data.keep_states:
        check_kept(recipe, net)
    if recipe.machine.compile:
        compiler(recipe.machine.compile)
    if recipe.machine.strategy == "fsdp" and recipe.steps.translate:
        raise DragomanError(
            "A sharded net cannot translate dev items: set steps.translate to 0 and steps.best to "
            "loss."
        )
    check_parts(recipe, net)


def check_parts(recipe: Recipe, net: Net) -> None:
    """What is frozen, or taken from another run, is a part of the net."""
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
            "nets moonshine and grafted: set data.keep_states to false."
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


def check_kind(recipe: Recipe, prepared: Prepared) -> None:
    """A net that hears needs sound; one that reads uses the texts of any pack."""
    for name, part in (("train", prepared.train), ("dev", prepared.dev)):
        if recipe.task != "mt" and part.silent:
            raise DragomanError(
                f"The net '{recipe.net}' hears speech, and data.{name} is text alone; "
                "give packs with sound, or 'voice:TEXT' to have it spoken."
            )


def check_ends(task: Task, prepared: Prepared) -> None:
    """Who learns from true ends of words needs data that knows them."""
    needed, both = task.needs_ends, ("train", "dev")
    for part in {"no": (), "train": ("train",), "all": both, "every": both}[needed]:
        data: TrainingSet = getattr(prepared, part)
        unknown = int((data.word_ends.lengths == 0).sum())
        if unknown == len(data):
            raise DragomanError(
                f"Nothing in data.{part} knows where its {data.data.ends} end, from which this "
                "recipe learns: give packs that were voiced (dragoman voice), or set "
                "task_settings and net_settings so that no ends are needed."
            )
        if unknown and needed == "every":
            raise DragomanError(
                f"{unknown} of {len(data)} items in data.{part} do not know where their "
                f"{data.data.ends} end, and with nowhere to decide they would be heard to their "
                "end: give packs that eSpeak NG alone has voiced."
            )
