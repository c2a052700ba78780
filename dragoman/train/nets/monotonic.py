"""Monotonic attention: where a head would stop reading, in expectation and for real.

For target step i and source state j, a head has an energy e_ij and stops reading at j with
probability p_ij = sigmoid(e_ij), else reads on. Trained in expectation (Raffel 2017):

    q_ij = (1 - p_{i,j-1}) q_{i,j-1} + a_{i-1,j}      a_ij = p_ij q_ij      a_0 = (1, 0, ...)

The expected alignment a is what hard attention uses (MMA-H). Infinite lookback (MILk, MMA-IL) goes
on to attend softly, with energies u, to all that was read:

    b_ij = sum_{k>=j} a_ik exp(u_ij) / sum_{m<=k} exp(u_im)

`read` does both, in plain PyTorch (`read_plain.py`) or in Triton's kernels (`read_triton.py`). The
arithmetic is float32 whatever autocast says. What has the size [B, H, U, S] is large: alignments
and soft attention live only while they are computed, and are computed once more for the gradient.

Shapes: B batch, H heads, U target units, S source states, G decisions (groups of states), D size.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import ModuleType

import torch
from torch import Tensor

from dragoman.train.nets import read_plain
from dragoman.train.nets.walk import CERTAIN

# ---------------------------------------------------------------- pre-decision


@dataclass(frozen=True)
class Decisions:
    """Where a head may stop: decision g is taken once the first ends[b, g] states are heard."""

    ends: Tensor  # [B, G]; never more than the item has
    counts: Tensor  # [B] decisions of each item, at least 1
    states: int  # S, the longest item's with its padding
    every: int | None = None  # states between two decisions, when that is fixed

    def heard(self, final: Tensor, full: Tensor) -> Decisions:
        """Where more source is to come (not final [B]) only the `full` [B] first ones count: the
        last one is taken at the end of what was heard, which is then no end."""
        return replace(self, counts=torch.where(final, self.counts, full))

    def trimmed(self) -> Decisions:
        """Without columns that no item needs."""
        return replace(self, ends=self.ends[:, : int(self.counts.max())].contiguous())

    def pool(self, states: Tensor) -> Tensor:
        """The mean of the states between one decision and the next: [B, S, D] -> [B, G, D]"""
        if self.every == 1:
            return states
        state = torch.arange(states.shape[1], device=states.device)
        begins = torch.nn.functional.pad(self.ends[:, :-1], (1, 0))
        member = (state >= begins.unsqueeze(-1)) & (state < self.ends.unsqueeze(-1))
        size = (self.ends - begins).clamp(min=1).unsqueeze(-1)
        return (member.to(states.dtype) @ states) / size

    def pick(self, states: Tensor) -> Tensor:
        """The state each decision ends on: [B, S, D] -> [B, G, D]"""
        if self.every == 1:
            return states
        index = (self.ends - 1).clamp(min=0).unsqueeze(-1)
        return states.gather(1, index.expand(-1, -1, states.shape[2]))

    @cached_property
    def places(self) -> Tensor:
        """The decision that is taken at each state [B, S], -1 where none is."""
        group = torch.arange(self.ends.shape[1], device=self.ends.device, dtype=torch.int32)
        real = group < self.counts.unsqueeze(1)
        state = torch.where(real, (self.ends - 1).clamp(min=0), self.states)  # or a spare column
        places = group.new_full((len(state), self.states + 1), -1)
        return places.scatter_(1, state, group.expand_as(state))[:, :-1].contiguous()


def decide_every(ratio: int, lengths: Tensor, states: int) -> Decisions:
    """Fixed pre-decision: every `ratio` states, and at the end of the source.

    lengths [B]; `states` is S, the longest of them with its padding.
    """
    group = torch.arange(1, (states + ratio - 1) // ratio + 1, device=lengths.device)
    ends = torch.minimum(group * ratio, lengths.unsqueeze(1))
    return Decisions(ends, ((lengths + ratio - 1) // ratio).clamp(min=1), states, ratio)


def decide_at(triggers: Tensor, lengths: Tensor) -> Decisions:
    """Flexible pre-decision: at the states marked in triggers [B, S], and at the end; G is S."""
    state = torch.arange(triggers.shape[1], device=triggers.device)
    last = (lengths - 1).unsqueeze(1)
    marked = (triggers & (state < last)) | (state == last)
    place = torch.where(marked, marked.cumsum(1) - 1, len(state))  # the rest go to a spare column
    ends = lengths.unsqueeze(1).repeat(1, len(state) + 1)
    ends = ends.scatter(1, place, (state + 1).expand_as(place))[:, :-1]
    return Decisions(ends, marked.sum(1).clamp(min=1), len(state))


# ---------------------------------------------------------------- in expectation


@dataclass(frozen=True)
class Manner:
    """How heads read."""

    heads: int
    soft: bool  # attend softly to all that was read; else only to the state they stop at
    decisions: Decisions
    noise: float = 0.0  # deviation of what is added to the energies of stopping
    dropout: float = 0.0  # of weights of attention
    energies: bool = False  # give the noise-free energies of stopping


@torch.compiler.disable  # its kernels are compiled already
def read(
    manner: Manner,
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
    implementation = _implementation(memory, manner)
    return implementation.read(manner, memory, queries, stop_key, bias, energy)


def _implementation(memory: Tensor, manner: Manner) -> ModuleType:
    """The kernels if they can take this, else plain functions."""
    if memory.is_cuda and memory.dtype != torch.float64:
        kernels = _kernels()
        if kernels is not None and kernels.can_read(manner, memory):
            return kernels
    return read_plain


@cache
def _kernels() -> ModuleType | None:
    """The Triton kernels, once they have shown on a small case that they work here."""
    try:
        from dragoman.train.nets import read_triton

        for soft in (True, False):
            found, expected = (_try(module, soft) for module in (read_triton, read_plain))
            torch.testing.assert_close(found, expected, atol=1e-2, rtol=1e-2)
    except Exception as error:  # of whatever kind: training goes on without them
        warnings.warn(
            f"Triton's kernels do not work here ({error}); monotonic attention is slower.",
            stacklevel=2,
        )
        return None
    return read_triton


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
    manner = Manner(2, soft, decide_every(2, torch.tensor([6], device=device), 6))
    with torch.autocast(device, enabled=False):
        memory, queries, stop_key = (x.requires_grad_() for x in inputs)
        context, delays, _ = module.read(manner, memory, queries, stop_key, None, None)
        gradients = torch.autograd.grad(context.sum() + delays.square().sum(), inputs)
    return [context.detach(), delays.detach(), *gradients]


# ---------------------------------------------------------------- for real


def first_stop(energy: Tensor, pointers: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Where heads stop when they decide by p >= 1/2, unit after unit, never going back.

    Energies [B, H, U, G], the decision each head stands at [B, H], decisions so far [B]. Gives the
    decision each head stops at [B, H, U] and whether it wanted to [B, H, U]; a head that would read
    on past the last decision is left there and did not want to.
    """
    group = torch.arange(energy.shape[-1], device=energy.device)
    willing = (energy >= 0) & (group < counts[:, None, None, None])
    last = (counts - 1).clamp(min=0)[:, None].expand_as(pointers)
    stops, wanted = [], []
    for u in range(energy.shape[2]):
        here = willing[:, :, u] & (group >= pointers.unsqueeze(-1))
        found = here.any(-1)
        pointers = torch.where(found, here.to(torch.int32).argmax(-1), last)
        stops.append(pointers)
        wanted.append(found)
    return torch.stack(stops, -1), torch.stack(wanted, -1)


def waitk_energy(k: int, units: int, groups: int, device: torch.device | None = None) -> Tensor:
    """Wait-k as energies [U, G]: unit u (from 0) stops for certain at decision k + u."""
    group = torch.arange(1, groups + 1, device=device)
    due = k + torch.arange(units, device=device).unsqueeze(1)
    return torch.where(group >= due, CERTAIN, -CERTAIN)
