"""A finished run in use: its net and vocabularies, translating batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from dragoman.errors import DragomanError
from dragoman.metrics.tokenize import tokenizer_for
from dragoman.train.checkpoints import average
from dragoman.train.data.corpus import TrainingSet
from dragoman.train.data.loader import Loader
from dragoman.train.data.plan import Plan
from dragoman.train.data.vocabulary import Pieces
from dragoman.train.foreign import exported_recipe, is_exported
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.prepare import units_of
from dragoman.train.recipe import Batch, Recipe, parse_change
from dragoman.train.run import RunFolder
from dragoman.train.search import translate
from dragoman.train.settings import merge
from dragoman.train.tasks.base import Task, front_of
from dragoman.train.tasks.registry import build_task


@dataclass(frozen=True)
class Trained:
    """What a run has made."""

    recipe: Recipe
    task: Task
    source: Pieces
    target: Pieces


# What a net may do otherwise at work than in training: the steps in which it decides and hears.
AT_WORK = ("ratio", "decision", "chunk", "right", "left")


def open_run(folder: Path, weights: Sequence[Path] = (), changes: tuple[str, ...] = ()) -> Trained:
    """The net of a run with its final weights (or the mean of other checkpoints), or a text net
    that was exported.

    `changes` are settings of the net for its work, such as `ratio=3`.
    """
    if is_exported(folder):
        recipe = exported_recipe(folder)
    else:
        run = RunFolder(folder)
        recipe = run.recipe()
        check_units(run)
    for change in changes:
        recipe = replace(recipe, net_settings=merge(recipe.net_settings, setting_at_work(change)))
    source = Pieces(folder / "source.model", recipe.vocabulary.source)
    target = Pieces(folder / "target.model", recipe.vocabulary.target)
    net = build(recipe.net, recipe.net_settings, Vocabularies(len(target), len(source)))
    net.load_state_dict(average(weights or [folder]))
    front = front_of(net, recipe.augment, recipe.seed)
    # As a plain task: translating needs no losses, so no vocabulary that marks word ends.
    task = build_task("mt" if front is None else "offline", {}, net, front)
    return Trained(recipe, task.eval(), source, target)


def check_units(run: RunFolder) -> None:
    """Weights mean nothing under units that they were not trained with, though as many."""
    path = run.folder / "data.json"
    trained = json.loads(path.read_text(encoding="utf-8")).get("units") if path.exists() else None
    for side, now in units_of(run).items():
        if trained and trained[side] != now:
            raise DragomanError(
                f"{run.folder / side}.model holds other units than {run.folder} was trained with; "
                "bring the right ones back."
            )


def setting_at_work(change: str) -> dict[str, Any]:
    """`ratio=3`, or `encoder_settings.chunk=16` for what an encoder does."""
    key, _, value = change.partition("=")
    if key.removeprefix("encoder_settings.") not in AT_WORK or not value.isdecimal():
        raise DragomanError(
            f"'{change}' is nothing that a trained net can do otherwise; give a whole number for "
            f"{', '.join(AT_WORK)} (in states of 40 ms), as in ratio=3."
        )
    return parse_change(change)


def translations(
    task: Task,
    data: TrainingSet,
    target: Pieces,
    device: torch.device,
    beam: int = 1,
    batch: Batch | None = None,
) -> Iterator[tuple[int, str]]:
    """Item numbers and their translations, in the order of batches."""
    plan = Plan(data, batch or Batch(seconds=120, buckets=8), 0).once()
    for one in Loader(data, device=device).batches(enumerate(plan)):
        one = one.to(device)
        with torch.no_grad():
            encoded = task.encode(one)
        longest = 20 + 2 * int(one.source_lengths.max())
        found = translate(task.net, encoded, beam, longest, first=one.tokens[:, 0])
        for item, ids in zip(one.items, found, strict=True):
            yield int(item), target.decode(ids)


def translation_quality(
    task: Task, data: TrainingSet, target: Pieces, device: torch.device, batch: Batch
) -> dict[str, float]:
    """BLEU and chrF of greedy translations, in batches as large as those of training: every unit is
    a step of all of a batch's items together."""
    import sacrebleu

    # Targets that are cut into words differently have only characters in common.
    tokenizers = {tokenizer_for(target) for target in data.data.targets}
    tokenizer = tokenizers.pop() if len(tokenizers) == 1 else "char"
    wanted = data.target_texts()
    found = dict(translations(task, data, target, device, batch=batch))
    said = [found[number] for number in range(len(data))]
    return {
        "bleu": sacrebleu.corpus_bleu(said, [wanted], tokenize=tokenizer).score,
        "chrf": sacrebleu.corpus_chrf(said, [wanted]).score,
    }
