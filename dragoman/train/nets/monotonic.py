"""Monotonic attention: where a head would stop reading, in expectation and for real.

For target step i and source state j, a head has an energy e_ij and stops reading at j with
probability p_ij = sigmoid(e_ij), else reads on. Trained in expectation (Raffel 2017):

    q_ij = (1 - p_{i,j-1}) q_{i,j-1} + a_{i-1,j}      a_ij = p_ij q_ij      a_0 = (1, 0, ...)

The expected alignment a is what hard attention uses (MMA-H). Infinite lookback (MILk, MMA-IL) goes
on to attend softly, with energies u, to all that was read:

    b_ij = sum_{k>=j} a_ik exp(u_ij) / sum_{m<=k} exp(u_im)

`walk.py` says how both are computed without ever dividing by something small; on CUDA
`walk_triton.py` does it in one kernel each. The arithmetic is float32 whatever autocast says.
What has the size [B, H, U, S] is large: alignments and soft attention live only while they are
computed, and are computed once more for the gradient.

Shapes: B batch, H heads, U target units, S source states, G decisions (groups of states).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from dragoman.train.nets import walk
from dragoman.train.nets.walk import CERTAIN

# ---------------------------------------------------------------- pre-decision


@dataclass(frozen=True)
class Decisions:
    """Where a head may stop: decision g is taken once the first ends[b, g] states are heard."""

    ends: Tensor  # [B, G]; never more than the item has
    counts: Tensor  # [B] decisions of each item, at least 1
    every: int | None = None  # states between two decisions, when that is fixed

    def heard(self, final: Tensor, full: Tensor) -> Decisions:
        """Where more source is to come (not final [B]) only the `full` [B] first ones count: the
        last one is taken at the end of what was heard, which is then no end."""
        return replace(self, counts=torch.where(final, self.counts, full))

    def trimmed(self) -> Decisions:
        """Without columns that no item needs."""
        return replace(self, ends=self.ends[:, : int(self.counts.max())])

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


def decide_every(ratio: int, lengths: Tensor, states: int) -> Decisions:
    """Fixed pre-decision: every `ratio` states, and at the end of the source.

    lengths [B]; `states` is S, the longest of them with its padding.
    """
    group = torch.arange(1, (states + ratio - 1) // ratio + 1, device=lengths.device)
    ends = torch.minimum(group * ratio, lengths.unsqueeze(1))
    return Decisions(ends, ((lengths + ratio - 1) // ratio).clamp(min=1), ratio)


def decide_at(triggers: Tensor, lengths: Tensor) -> Decisions:
    """Flexible pre-decision: at the states marked in triggers [B, S], and at the end; G is S."""
    state = torch.arange(triggers.shape[1], device=triggers.device)
    last = (lengths - 1).unsqueeze(1)
    marked = (triggers & (state < last)) | (state == last)
    place = torch.where(marked, marked.cumsum(1) - 1, len(state))  # the rest go to a spare column
    ends = lengths.unsqueeze(1).repeat(1, len(state) + 1)
    ends = ends.scatter(1, place, (state + 1).expand_as(place))[:, :-1]
    return Decisions(ends, marked.sum(1).clamp(min=1))


# ---------------------------------------------------------------- in expectation


@dataclass(frozen=True)
class Soft:
    """Attention to all that was read: scaled queries [B, H, U, K] and keys [B, H, S, K]"""

    query: Tensor
    key: Tensor


def read(
    energy: Tensor, value: Tensor, decisions: Decisions, soft: Soft | None, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """What heads read in expectation [B, H, U, K], and how many states before each unit [B, H, U].

    energy [B, H, U, G] of stopping at each decision; the last decision of an item stops whoever
    arrives, since the source has ended. value [B, H, S, K] with soft attention, else of the states
    decisions end on, [B, H, G, K]. What is dropped out are weights of attention.
    """
    heads = energy.shape[1]
    ends, counts = (x.repeat_interleave(heads, 0) for x in (decisions.ends, decisions.counts))
    settings = _Settings(decisions.every, dropout)
    tensors = [x.flatten(0, 1) for x in (energy, value)]
    tensors += [None, None] if soft is None else [x.flatten(0, 1) for x in (soft.query, soft.key)]
    context, delays = _Read.apply(*tensors, counts, ends, settings)
    return context.unflatten(0, energy.shape[:2]), delays.unflatten(0, energy.shape[:2])


@dataclass(frozen=True)
class _Settings:
    every: int | None  # states between two decisions; None: `ends` says where they are
    dropout: float


class _Read(torch.autograd.Function):
    """Keeps little of the size of the energies but the energies of stopping: the soft attention,
    and the alignment where it is large, are made once more for the gradient."""

    @staticmethod
    def forward(ctx, energy, value, query, key, counts, ends, settings):  # noqa: ANN001
        alignment = _walks(energy).align(energy, counts)
        weights = alignment
        if query is not None:
            look = _Look(query @ key.transpose(1, 2), ends, settings)
            weights = look.back(alignment)
        weights, kept = weights.to(value.dtype), None
        if settings.dropout:
            weights, kept = torch.native_dropout(weights, settings.dropout, train=True)
        # Small where many states share a decision, and its walk is the slowest part.
        small = query is not None and 2 * ends.shape[1] < key.shape[1]
        ctx.save_for_backward(
            energy, value, query, key, counts, ends, kept, alignment if small else None
        )
        ctx.settings = settings
        return weights @ value, (alignment * ends.unsqueeze(1)).sum(-1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, to_context: Tensor, to_delays: Tensor):  # noqa: ANN001
        energy, value, query, key, counts, ends, kept, alignment = ctx.saved_tensors
        if alignment is None:
            alignment = _walks(energy).align(energy, counts)

        def dropped(weights: Tensor) -> Tensor:
            if kept is None:
                return weights
            scale = 1 / (1 - ctx.settings.dropout)
            return torch.ops.aten.native_dropout_backward(weights, kept, scale)

        to_weights = dropped(to_context @ value.transpose(1, 2))
        to_query = to_key = None
        if query is None:
            weights, to_alignment = alignment, to_weights
        else:
            look = _Look(query @ key.transpose(1, 2), ends, ctx.settings)
            weights = look.back(alignment)
            to_alignment, to_soft = look.gradients(to_weights, alignment)
            to_query, to_key = to_soft @ key, to_soft.transpose(1, 2) @ query
        to_value = dropped(weights.to(value.dtype)).transpose(1, 2) @ to_context
        to_energy = None
        if ctx.needs_input_grad[0]:
            to_alignment = to_alignment + to_delays.unsqueeze(-1) * ends.unsqueeze(1)
            to_energy = _walks(energy).align_backward(to_alignment, energy, alignment, counts)
        return to_energy, to_value, to_query, to_key, None, None, None


class _Look:
    """The look back over energies [N, U, S] from where decisions end, with its gradients."""

    def __init__(self, energy: Tensor, ends: Tensor, settings: _Settings):
        self.energy, self.walks, self.ends = energy, _walks(energy), ends
        self.lengths, self.flexible = ends[:, -1], settings.every is None
        self.ratio = settings.every or 1  # groups of any size: the look back goes state by state

    def back(self, alignment: Tensor) -> Tensor:
        """Weights of states [N, U, S]"""
        return self.walks.look_back(self.spread(alignment), self.energy, self.lengths, self.ratio)

    def gradients(self, to_weights: Tensor, alignment: Tensor) -> tuple[Tensor, Tensor]:
        """On the alignment [N, U, G] and the energies [N, U, S]"""
        to_spread, to_energy = self.walks.look_back_backward(
            to_weights, self.spread(alignment), self.energy, self.lengths, self.ratio
        )
        if self.flexible:
            to_spread = to_spread.gather(-1, self.places(alignment))
        return to_spread, to_energy

    def spread(self, alignment: Tensor) -> Tensor:
        """Where decisions are anywhere, each one's probability is put on the state it ends on."""
        if not self.flexible:
            return alignment
        states = alignment.new_zeros(self.energy.shape)
        return states.scatter_add(-1, self.places(alignment), alignment)

    def places(self, alignment: Tensor) -> Tensor:
        """The state that each decision ends on: [N, U, G]"""
        return (self.ends - 1).clamp(min=0).unsqueeze(1).expand_as(alignment)


def _walks(x: Tensor) -> ModuleType:
    """The kernels if they can take this tensor, else the plain functions of the same names."""
    if x.is_cuda and x.dtype != torch.float64:
        kernels = _kernels()
        if kernels is not None and x.shape[-1] <= kernels.MAX_STATES:
            return kernels
    return walk


@cache
def _kernels() -> ModuleType | None:
    """The Triton kernels, once they have shown on a small case that they work here."""
    try:
        from dragoman.train.nets import walk_triton

        energy = torch.linspace(-2, 2, 12, device="cuda").view(1, 2, 6)
        lengths = torch.tensor([6], device="cuda")
        found, expected = (
            w.look_back(w.align(energy, lengths), energy, lengths, 1) for w in (walk_triton, walk)
        )
        torch.testing.assert_close(found, expected)
    except Exception as error:  # of whatever kind: training goes on without them
        warnings.warn(
            f"Triton's kernels do not work here ({error}); monotonic attention is slower.",
            stacklevel=2,
        )
        return None
    return walk_triton


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
