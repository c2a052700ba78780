"""Updates captured as CUDA graphs: a GPU repeats them without waiting for Python's launches.

Batches come in few shapes, so forward and backward are captured once for each of them (and once
more when other losses begin to count), and the optimiser's step once for all. A graph reads and
writes fixed memory: batches are copied into buffers, gradients stay where they are, the learning
rate is a number on the device. Chance is seeded before every replay, as before every plain step, so
both draw the same numbers.

The first times that a shape comes it is computed plainly, and counts: kernels are planned and
compiled then, and nothing has to be undone. Without a GPU that is all there is: the same function
on the same buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch
from lightning.fabric import Fabric
from torch import Tensor

from dragoman.train.data.loader import Batch
from dragoman.train.recipe import Recipe
from dragoman.train.step import Step, seed_of
from dragoman.train.tasks.base import Task, Terms

PLAIN_RUNS = 2  # before a function is captured
T = TypeVar("T")
Shape = tuple[Any, ...]


def why_not(fabric: Fabric, recipe: Recipe, task: Task) -> str:
    """What keeps a run from being captured; nothing where it can be."""
    if fabric.world_size > 1:
        return "several processes add up their gradients"
    if recipe.machine.precision == "16-mixed":
        return "machine.precision 16-mixed looks at gradients on the host"
    return task.host_decisions()


def make_step(fabric: Fabric, recipe: Recipe, task: Task, tell: Callable[[str], None]) -> Step:
    """Captured where settings ask for it or, left to themselves, where there is a GPU."""
    wanted, reason = recipe.machine.capture, why_not(fabric, recipe, task)
    if wanted is False or (wanted == "auto" and fabric.device.type != "cuda"):
        return Step(fabric, recipe, task)
    if reason:
        tell(f"training is not captured: {reason}")
        return Step(fabric, recipe, task)
    return CapturedStep(fabric, recipe, task)


class CapturedStep(Step):
    """A step on buffers that stay; on a GPU, replayed."""

    captured = True

    def __init__(self, fabric: Fabric, recipe: Recipe, task: Task):
        super().__init__(fabric, recipe, task)
        device = fabric.device
        self.rate = torch.zeros((), device=device)
        self.scale = torch.zeros((), device=device)
        self.shapes: dict[Shape, tuple[Batch, Repeated[Terms]]] = {}
        self.memory = Memory(device)
        self.stepped = Repeated(self.memory, self._step)
        self.trained = [p for group in self.optimiser.param_groups for p in group["params"]]
        self.gradients = [torch.zeros_like(parameter) for parameter in self.trained]
        self._use(self.gradients)
        self.resumed()

    def _use(self, gradients: Sequence[Tensor | None]) -> None:
        for parameter, gradient in zip(self.trained, gradients, strict=True):
            parameter.grad = gradient

    def resumed(self) -> None:
        super().resumed()
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate if self.memory.graphs else 0.0

    def learn(self, batch: Batch, scale: float, last: bool) -> Terms:
        task = self.plain_task
        key = (*shape_of(batch), task.stage(task.step))
        if key not in self.shapes:
            buffers = batch.each(lambda tensor: tensor.to(self.fabric.device, copy=True))
            self.shapes[key] = buffers, Repeated(self.memory, self._learn)
        buffers, learned = self.shapes[key]
        fill(buffers, batch)
        self.scale.fill_(scale)
        torch.manual_seed(seed_of(self.recipe, batch))
        task.seed_chance(batch.number)
        return learned(buffers, chance=task.chance)

    def _learn(self, batch: Batch) -> Terms:
        self._use([None] * len(self.trained))
        terms = self.task(batch)
        self.fabric.backward(terms.total * self.scale)
        self._add_up()
        return terms.detached()

    def _add_up(self) -> None:
        """Add new gradients to those before, all by one kernel instead of one for each."""
        pairs = zip(self.gradients, self.trained, strict=True)
        new = [(total, p.grad) for total, p in pairs if p.grad is not None]
        torch._foreach_add_(*(list(one) for one in zip(*new, strict=True)))
        self._use(self.gradients)

    def update(self, rate: float) -> Tensor:
        self.rate.fill_(rate)
        if not self.memory.graphs:
            self.set_rate(rate)
        return self.stepped()

    def _step(self) -> Tensor:
        norm = self.clip()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=False)
        return norm


def shape_of(batch: Batch) -> Shape:
    """Batches with the same one fit the same buffers, and the same code is run for them."""
    tensors = ((n, v.shape, v.dtype) for n, v in vars(batch).items() if isinstance(v, Tensor))
    return (batch.width, batch.perturbed, *tensors)


def fill(buffers: Batch, batch: Batch) -> None:
    """Copy a batch into the buffers of its shape."""
    for name, value in vars(batch).items():
        if isinstance(value, Tensor):
            getattr(buffers, name).copy_(value, non_blocking=True)
        else:
            setattr(buffers, name, value)


class Memory:
    """What all graphs of a run share: one stream and one pool, since they run one at a time."""

    def __init__(self, device: torch.device):
        self.graphs = device.type == "cuda"
        self.stream = torch.cuda.Stream(device) if self.graphs else None
        self.pool = torch.cuda.graph_pool_handle() if self.graphs else None


class Repeated(Generic[T]):
    """A function of fixed memory that is captured when it has run a few times."""

    def __init__(self, memory: Memory, function: Callable[..., T]):
        self.memory, self.function = memory, function
        self.runs = 0
        self.captured: tuple[torch.cuda.CUDAGraph, T] | None = None

    def __call__(self, *arguments: Batch, chance: torch.Generator | None = None) -> T:
        if not self.memory.graphs:
            return self.function(*arguments)
        if self.runs < PLAIN_RUNS:
            self.runs += 1
            return self._aside(*arguments)
        if self.captured is None:
            self.captured = self._capture(*arguments, chance=chance)
        graph, result = self.captured
        graph.replay()
        return result

    def _aside(self, *arguments: Batch) -> T:
        """On the stream of the capture, where autograd then expects its work."""
        stream = self.memory.stream
        assert stream is not None  # there is one where there are graphs
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            result = self.function(*arguments)
        torch.cuda.current_stream().wait_stream(stream)
        return result

    def _capture(
        self, *arguments: Batch, chance: torch.Generator | None
    ) -> tuple[torch.cuda.CUDAGraph, T]:
        """The graph, and the tensors in which each replay leaves its results."""
        graph = torch.cuda.CUDAGraph()
        if chance is not None:
            graph.register_generator_state(chance)
        # Threads that prepare batches may use the device meanwhile.
        with torch.cuda.graph(
            graph,
            pool=self.memory.pool,
            stream=self.memory.stream,
            capture_error_mode="thread_local",
        ):
            result = self.function(*arguments)
        return graph, result
