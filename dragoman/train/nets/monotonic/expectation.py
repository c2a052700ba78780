"""Monotonic attention: where a head would stop reading, in expectation and for real.

For target step i and source state j, a head has an energy e_ij and stops reading at j with
probability p_ij = sigmoid(e_ij), else reads on. Trained in expectation (Raffel 2017):

    q_ij = (1 - p_{i,j-1}) q_{i,j-1} + a_{i-1,j}      a_ij = p_ij q_ij      a_0 = (1, 0, ...)

The expected alignment a is what hard attention uses (MMA-H). Infinite lookback (MILk, MMA-IL) goes
on to attend softly, with energies u, to all that was read:

    b_ij = sum_{k>=j} a_ik exp(u_ij) / sum_{m<=k} exp(u_im)

`read` does both, in plain PyTorch (`expectation_plain.py`) or in Triton's kernels
(`expectation_triton.py`). The arithmetic is float32 whatever autocast says. What has the size
[B, H, U, S] is large: alignments and soft attention live only while they are computed, and are
computed once more for the gradient.

Shapes: B batch, H heads, U target units, S source states, G decisions (groups of states), D size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from dragoman.train.nets.monotonic import expectation_plain
from dragoman.train.nets.monotonic.decisions import Decisions, decide_every
from dragoman.train.trials import passed


@dataclass(frozen=True)
class HeadSettings:
    """How heads read."""

    heads: int
    soft: bool  # attend softly to all that was read; else only to the state they stop at
    decisions: Decisions
    noise: float = 0.0  # deviation of what is added to the energies of stopping
    dropout: float = 0.0  # of weights of attention
    energies: bool = False  # give the noise-free energies of stopping


@torch.compiler.disable  # its kernels are compiled already
def read(
    settings: HeadSettings,
    memory: Tensor,
    queries: Tensor | None = None,
    stop_key: Tensor | None = None,
    bias: Tensor | None = None,
    energy: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """What heads read in expectation [B, U, D], how many states before each unit [B, H, U], and
    the energies of stopping [B, H, U, G] if asked for.

    memory: keys and values of the states [B, S, 2 D] if attention is soft, else values of the
    states that decisions end on [B, G, D]. queries [B, U, D or 2 D]: those of soft attention, then
    those that the energies of stopping are made of, with stop_key [B, G, D] and a bias, unless they
    are given as `energy`, broadcastable to [B, H, U, G]. The last decision of an item stops whoever
    arrives, since the source has ended.
    """
    implementation = _implementation(memory, settings)
    return implementation.read(settings, memory, queries, stop_key, bias, energy)


def _implementation(memory: Tensor, settings: HeadSettings) -> ModuleType:
    """The kernels if they can take this, else plain functions."""
    if memory.is_cuda and memory.dtype != torch.float64:
        kernels = _kernels()
        if kernels is not None and kernels.can_read(settings, memory):
            return kernels
    return expectation_plain


def repeatable() -> bool:
    """Whether a graph of it can be captured: by kernels, or, without a GPU, where there is none."""
    return not torch.cuda.is_available() or _kernels() is not None


@cache
def _kernels() -> ModuleType | None:
    """The Triton kernels, once they have shown on a small case that they work here."""
    if not passed(_trial, "; monotonic attention is slower"):
        return None
    from dragoman.train.nets.monotonic import expectation_triton

    return expectation_triton


def _trial() -> None:
    from dragoman.train.nets.monotonic import expectation_triton

    for soft in (True, False):
        found, expected = (_try(module, soft) for module in (expectation_triton, expectation_plain))
        torch.testing.assert_close(found, expected, atol=1e-2, rtol=1e-2)


@torch.inference_mode(False)  # the first to read may be a validation
@torch.enable_grad()
def _try(module: ModuleType, soft: bool, device: str = "cuda") -> list[Tensor]:
    """Results and gradients of a small case."""
    parts = 2 if soft else 1
    shapes = [(1, 6 if soft else 3, 16 * parts), (1, 4, 16 * parts), (1, 3, 16)]
    inputs = [
        torch.linspace(-2, 2, torch.Size(shape).numel(), device=device).sin().view(shape)
        for shape in shapes
    ]
    settings = HeadSettings(2, soft, decide_every(2, torch.tensor([6], device=device), 6))
    with torch.autocast(device, enabled=False):
        memory, queries, stop_key = (x.requires_grad_() for x in inputs)
        context, delays, _ = module.read(settings, memory, queries, stop_key, None, None)
        gradients = torch.autograd.grad(context.sum() + delays.square().sum(), inputs)
    return [context.detach(), delays.detach(), *gradients]
