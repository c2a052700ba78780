"""Before the first update of a run that keeps states: all sound is heard, once."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from lightning.fabric import Fabric
from torch import Tensor

from dragoman.train.data.corpus import TrainingSet
from dragoman.train.data.loader import Batch, Loader
from dragoman.train.data.plan import Plan
from dragoman.train.data.states import KeptStates
from dragoman.train.recipe import Recipe
from dragoman.train.tasks.base import Task


@torch.no_grad()
def kept_states(
    fabric: Fabric, recipe: Recipe, task: Task, data: TrainingSet, tell: Callable[[str], None]
) -> KeptStates | None:
    """What the frozen part of the net hears in the training data; None where nobody asks for it."""
    if not recipe.data.keep_states:
        return None
    begun = time.perf_counter()
    kept = KeptStates(data, task.listening)
    some = data.subset(kept.chosen)
    plan = enumerate(Plan(some, recipe.batch, recipe.seed).once())
    task.eval()

    def listen(batch: Batch) -> tuple[Tensor, Tensor]:
        with fabric.autocast():
            return task.listen(batch.to(fabric.device))

    numbers = torch.bfloat16 if recipe.machine.precision.startswith("bf16") else torch.float32
    where = fabric.device if recipe.data.resident == "device" else torch.device("cpu")
    batches = Loader(some, recipe.machine.threads, "disk", fabric.device).batches(plan)
    kept.fill(batches, listen, torch.empty(0, dtype=numbers, device=where))
    seconds = time.perf_counter() - begun
    tell(f"{len(some)} sounds became {len(kept.rows)} states in {seconds:.0f} s")
    return kept
