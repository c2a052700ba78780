"""The net and the task of a recipe."""

from __future__ import annotations

import torch

from dragoman.errors import DragomanError
from dragoman.text.languages import written_without_spaces
from dragoman.train.nets.base import Net, Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.prepare import Prepared, feature_statistics
from dragoman.train.recipe import Recipe
from dragoman.train.run import RunFolder
from dragoman.train.start import start
from dragoman.train.tasks.base import Task, Words, feature_norm_of, front_of
from dragoman.train.tasks.registry import build_task


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
    return task


def words_of(prepared: Prepared) -> Words:
    """Which units end words; the source side has the CTC blank as one unit more."""
    data = prepared.train.data
    source = prepared.source.word_ends(1, spaced=not written_without_spaces(data.source))
    target = prepared.target.word_ends(spaced=not all(map(written_without_spaces, data.targets)))
    return Words(
        None if source is None else torch.tensor(source),
        None if target is None else torch.tensor(target),
    )
