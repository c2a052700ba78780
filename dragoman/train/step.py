"""One update of the optimiser in two parts: what a micro-batch teaches, and the step itself."""

from __future__ import annotations

import math

import torch
from lightning.fabric import Fabric
from torch import Tensor

from dragoman.train.data.loader import Batch
from dragoman.train.recipe import Recipe
from dragoman.train.tasks.base import Task, Terms


class Step:
    """Forward and backward of micro-batches, then clipping and the optimiser."""

    def __init__(self, fabric: Fabric, recipe: Recipe, task: Task):
        self.fabric, self.recipe, self.plain_task = fabric, recipe, task
        optimiser = make_optimiser(task, recipe, fabric.device, self.captured)
        self.task, self.optimiser = fabric.setup(task, optimiser)

    captured = False

    def resumed(self) -> None:
        """Called when a checkpoint has been loaded: it says how another process has stepped."""
        for group in self.optimiser.param_groups:
            group["capturable"] = self.captured and self.fabric.device.type == "cuda"

    def learn(self, batch: Batch, scale: float, last: bool) -> Terms:
        """Add the gradients of a batch's losses times `scale`; `last` is its update's last one."""
        torch.manual_seed(seed_of(self.recipe, batch))
        with self.fabric.no_backward_sync(self.task, enabled=not last):
            terms = self.task(batch.to(self.fabric.device))
            self.fabric.backward(terms.total * scale)
        return terms

    def update(self, rate: float) -> Tensor:
        """A step of the optimiser at a learning rate; returns the gradient's norm."""
        self.set_rate(rate)
        norm = self.clip()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return norm

    def set_rate(self, rate: float) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    def clip(self) -> Tensor:
        longest = self.recipe.optimiser.clip or math.inf
        norm = self.fabric.clip_gradients(
            self.task, self.optimiser, max_norm=longest, error_if_nonfinite=False
        )
        assert norm is not None  # it is where a norm limits, and not each value
        return norm


def seed_of(recipe: Recipe, batch: Batch) -> int:
    """All chance of a micro-batch is a function of the run's seed and the batch's number."""
    return recipe.seed * 1_000_003 + batch.number


def make_optimiser(
    task: Task, recipe: Recipe, device: torch.device, captured: bool
) -> torch.optim.Optimizer:
    settings = recipe.optimiser
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[settings.kind]
    trained = [parameter for parameter in task.parameters() if parameter.requires_grad]
    # In half floats gradients are scaled up; they must be as they are before they are clipped, and
    # a fused optimiser scales them down itself, which is too late.
    scaled = recipe.machine.precision == "16-mixed"
    return kind(
        trained,
        lr=settings.rate,
        betas=settings.betas,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
        fused=device.type == "cuda" and not scaled,
        capturable=captured and device.type == "cuda",
    )
