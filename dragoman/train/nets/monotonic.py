"""Monotonic attention: where a head would stop reading, in expectation and for real.

For target step i and source state j, a head has an energy e_ij and stops reading at j with
probability p_ij = sigmoid(e_ij), else reads on. Trained in expectation (Raffel 2017):

    q_ij = (1 - p_{i,j-1}) q_{i,j-1} + a_{i-1,j}      a_ij = p_ij q_ij      a_0 = (1, 0, ...)

The expected alignment a is what hard attention uses (MMA-H). Infinite lookback (MILk, MMA-IL) goes
on to attend softly, with energies u, to all that was read:

    b_ij = sum_{k>=j} a_ik exp(u_ij) / sum_{m<=k} exp(u_im)

`walk.py` says how both are computed without ever dividing by something small; on CUDA
`walk_triton.py` does it in one kernel each. The arithmetic is float32 whatever autocast says.
Energies [B, H, U, S] are large: those of the soft attention live only while it is computed, and
are computed once more for the gradient.

Shapes: B batch, H heads, U target units, S source states, G decisions (groups of states).
"""

import warnings
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from dragoman.train.nets import walk
from dragoman.train.nets.walk import CERTAIN

# ---------------------------------------------------------------- in expectation


def expected_alignment(energy: Tensor, counts: Tensor) -> Tensor:
    """Energies [B, H, U, G], decisions of each item [B] -> alignment [B, H, U, G], rows sum to 1.

    The last decision of an item stops whoever arrives: the source has ended.
    """
    return _Align.apply(energy.flatten(0, 1), _per_head(counts, energy)).view_as(energy)


def expected_delay(alignment: Tensor, ends: Tensor) -> Tensor:
    """How many states are read before each unit: [B, H, U, G], [B, G] -> [B, H, U]"""
    return (alignment * ends[:, None, None, :]).sum(-1)


def look_back(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    alignment: Tensor,
    lengths: Tensor,
    ratio: int = 1,
    dropout: float = 0.0,
) -> Tensor:
    """Attention by queries to all that was read, in expectation: [B, H, U, K].

    query [B, H, U, K], already scaled; key and value [B, H, S, K]; alignment [B, H, U, G] to the
    ends of groups of `ratio` states; lengths [B] in states. What is dropped out are weights.
    """
    tensors = (t.flatten(0, 1) for t in (query, key, value, alignment))
    out = _LookBack.apply(*tensors, _per_head(lengths, query), ratio, dropout)
    return out.unflatten(0, query.shape[:2])


class _Align(torch.autograd.Function):
    @staticmethod
    def forward(ctx, energy: Tensor, lengths: Tensor) -> Tensor:  # noqa: ANN001
        alignment = _walks(energy).align(energy, lengths)
        ctx.save_for_backward(energy, alignment, lengths)
        return alignment

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # noqa: ANN001
        return _walks(grad).align_backward(grad, *ctx.saved_tensors), None


class _LookBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, alignment, lengths, ratio, dropout):  # noqa: ANN001
        energy = query @ key.transpose(1, 2)
        weights = _walks(energy).look_back(alignment, energy, lengths, ratio).to(value.dtype)
        kept = None
        if dropout:
            kept = torch.empty_like(weights, dtype=torch.bool).bernoulli_(1 - dropout)
        ctx.save_for_backward(query, key, value, alignment, lengths, kept)
        ctx.ratio, ctx.dropout = ratio, dropout
        return _drop(weights, kept, dropout) @ value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor):  # noqa: ANN001
        query, key, value, alignment, lengths, kept = ctx.saved_tensors
        energy = query @ key.transpose(1, 2)
        walks = _walks(energy)
        weights = walks.look_back(alignment, energy, lengths, ctx.ratio).to(value.dtype)
        to_value = _drop(weights, kept, ctx.dropout).transpose(1, 2) @ grad
        to_weights = _drop(grad @ value.transpose(1, 2), kept, ctx.dropout)
        to_alignment, to_energy = walks.look_back_backward(
            to_weights, alignment, energy, lengths, ctx.ratio
        )
        to_query, to_key = to_energy @ key, to_energy.transpose(1, 2) @ query
        return to_query, to_key, to_value, to_alignment, None, None, None


def _drop(weights: Tensor, kept: Tensor | None, dropout: float) -> Tensor:
    return weights if kept is None else weights * kept / (1 - dropout)


def _per_head(lengths: Tensor, x: Tensor) -> Tensor:
    """[B] -> [B * H], as long as x [B, H, ...] has heads"""
    return lengths.repeat_interleave(x.shape[1])


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


# ---------------------------------------------------------------- pre-decision


@dataclass(frozen=True)
class Decisions:
    """Where a head may stop: decision g is taken once the first ends[b, g] states are heard."""

    ends: Tensor  # [B, G]; never more than the item has
    counts: Tensor  # [B] decisions of each item, at least 1
    every: int | None = None  # states between two decisions, when that is fixed

    @property
    def lengths(self) -> Tensor:
        """[B] states of each item: where the last decision ends"""
        return self.ends[:, -1]

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

    def spread(self, alignment: Tensor, states: int) -> Tensor:
        """Puts each decision's probability on the state it ends on: [..., G] -> [..., S]"""
        if self.every == 1:
            return alignment
        index = (self.ends - 1).clamp(min=0)[:, None, None, :].expand_as(alignment)
        shape = (*alignment.shape[:-1], states)
        return alignment.new_zeros(shape).scatter_add(-1, index, alignment)


def decide_every(ratio: int, lengths: Tensor, states: int) -> Decisions:
    """Fixed pre-decision: every `ratio` states, and at the end of the source.

    lengths [B]; `states` is S, the longest of them with its padding.
    """
    group = torch.arange(1, (states + ratio - 1) // ratio + 1, device=lengths.device)
    ends = torch.minimum(group * ratio, lengths.unsqueeze(1))
    return Decisions(ends, ((lengths + ratio - 1) // ratio).clamp(min=1), ratio)


def decide_at(triggers: Tensor, lengths: Tensor) -> Decisions:
    """Flexible pre-decision: at the states marked in triggers [B, S], and at the end."""
    state = torch.arange(triggers.shape[1], device=triggers.device)
    last = (lengths - 1).unsqueeze(1)
    marked = (triggers & (state < last)) | (state == last)
    counts = marked.sum(1).clamp(min=1)
    order = torch.where(marked, state, triggers.shape[1]).sort(1).values[:, : int(counts.max())]
    return Decisions(torch.minimum(order + 1, lengths.unsqueeze(1)), counts)
