"""Reading in expectation in plain PyTorch: `read` of `expectation.py`, made of `alignment.py`.

For every device and precision; the kernels are held against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dragoman.train.nets.layers import join_heads, split_heads
from dragoman.train.nets.monotonic import alignment as walk

if TYPE_CHECKING:
    from dragoman.train.nets.monotonic.expectation import HeadSettings


def read(
    settings: HeadSettings,
    memory: Tensor,
    queries: Tensor | None,
    stop_key: Tensor | None,
    bias: Tensor | None,
    energy: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    heads, decisions = settings.heads, settings.decisions
    if energy is None:
        assert queries is not None  # the net learns when to stop
        assert stop_key is not None
        clean = stop_energies(queries[..., -stop_key.shape[-1] :], stop_key, bias, heads)
        energy = clean + settings.noise * torch.randn_like(clean) if settings.noise else clean
    else:
        clean = energy
    batch = (len(memory), heads)
    energy = energy.expand(*batch, -1, -1)
    tensors: list[Tensor | None] = [energy, split_heads(memory, heads), None, None]
    if settings.soft:
        assert queries is not None
        size = memory.shape[-1] // 2
        key, value = (split_heads(part, heads) for part in memory.chunk(2, dim=-1))
        query = split_heads(queries[..., :size], heads) * (size // heads) ** -0.5
        tensors = [energy, value, query, key]
    tensors = [None if x is None else x.flatten(0, 1) for x in tensors]
    ends, counts = (x.repeat_interleave(heads, 0) for x in (decisions.ends, decisions.counts))
    kept = _Settings(decisions.every, settings.dropout)
    context, delays = _Read.apply(*tensors, counts, ends, kept)
    context, delays = (x.unflatten(0, batch) for x in (context, delays))
    return join_heads(context), delays, clean if settings.energies else None


def stop_energies(query: Tensor, key: Tensor, bias: Tensor | None, heads: int) -> Tensor:
    """Energies of stopping [B, H, U, G] of queries [B, U, D] and keys [B, G, D]"""
    scaled = query * (query.shape[-1] // heads) ** -0.5
    energy = split_heads(scaled, heads) @ split_heads(key, heads).transpose(-1, -2)
    return energy if bias is None else energy + bias


@dataclass(frozen=True)
class _Settings:
    every: int | None  # states between two decisions; None: `ends` says where they are
    dropout: float


class _Read(torch.autograd.Function):
    """Keeps little of the size of the energies but the energies of stopping: the soft attention,
    and the alignment where it is large, are made once more for the gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        energy: Tensor,
        value: Tensor,
        query: Tensor | None,
        key: Tensor | None,
        counts: Tensor,
        ends: Tensor,
        settings: _Settings,
    ) -> tuple[Tensor, Tensor]:
        alignment = walk.align(energy, counts)
        weights = alignment
        if query is not None and key is not None:
            look = _Look(query @ key.transpose(1, 2), ends, settings)
            weights = look.back(alignment)
        weights, kept = weights.to(value.dtype), None
        if settings.dropout:
            weights, kept = torch.native_dropout(weights, settings.dropout, train=True)
        # Small where many states share a decision, and its walk is the slowest part.
        small = key is not None and 2 * ends.shape[1] < key.shape[1]
        ctx.save_for_backward(
            energy, value, query, key, counts, ends, kept, alignment if small else None
        )
        ctx.settings = settings
        return weights @ value, (alignment * ends.unsqueeze(1)).sum(-1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, to_context: Tensor, to_delays: Tensor) -> tuple[Any, ...]:
        energy, value, query, key, counts, ends, kept, alignment = ctx.saved_tensors
        if alignment is None:
            alignment = walk.align(energy, counts)

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
            to_energy = walk.align_backward(to_alignment, energy, alignment, counts)
        return to_energy, to_value, to_query, to_key, None, None, None


class _Look:
    """The look back over energies [N, U, S] from where decisions end, with its gradients."""

    def __init__(self, energy: Tensor, ends: Tensor, settings: _Settings):
        self.energy, self.ends = energy, ends
        self.lengths, self.flexible = ends[:, -1], settings.every is None
        self.ratio = settings.every or 1  # groups of any size: the look back goes state by state

    def back(self, alignment: Tensor) -> Tensor:
        """Weights of states [N, U, S]"""
        return walk.look_back(self.spread(alignment), self.energy, self.lengths, self.ratio)

    def gradients(self, to_weights: Tensor, alignment: Tensor) -> tuple[Tensor, Tensor]:
        """On the alignment [N, U, G] and the energies [N, U, S]"""
        to_spread, to_energy = walk.look_back_backward(
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
