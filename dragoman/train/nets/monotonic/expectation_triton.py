"""Reading in expectation on CUDA: `read` of `expectation.py` in a few Triton kernels.

Tensors stay as the linear maps give and take them, [B, T, D] with the heads side by side: nothing
is copied apart or together. Noise and dropout come from seeds that the device draws (nobody waits
for it, and graphs can be captured), and are made again for the gradient instead of being kept. So
are energies and alignment where a decision is taken at every state; elsewhere they are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from dragoman.train.nets.monotonic.alignment_triton import MAX_DECISIONS, align, align_backward
from dragoman.train.nets.monotonic.lookback_triton import Look
from dragoman.train.nets.monotonic.products_triton import multiply, one_by_one, side_by_side

if TYPE_CHECKING:
    from dragoman.train.nets.monotonic.expectation import HeadSettings

MAX_HEAD = 128  # tiles of such vectors must fit the memory of a program


def can_read(settings: HeadSettings, memory: Tensor) -> bool:
    head = memory.shape[2] // settings.heads // (2 if settings.soft else 1)
    return settings.decisions.ends.shape[1] <= MAX_DECISIONS and head <= MAX_HEAD


def read(
    settings: HeadSettings,
    memory: Tensor,
    queries: Tensor | None,
    stop_key: Tensor | None,
    bias: Tensor | None,
    energy: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    memory, queries, stop_key = _whole(memory), _whole(queries), _whole(stop_key)
    each = None if energy is None else energy.expand(len(memory), settings.heads, -1, -1)
    seeds = draw_seeds(memory.device) if settings.noise or settings.dropout else (None, None)
    context, delays, clean = _Read.apply(memory, queries, stop_key, bias, each, settings, seeds)
    return context, delays, energy if settings.energies and energy is not None else clean


def draw_seeds(device: torch.device | str) -> tuple[Tensor, ...]:
    """Of noise and of dropout."""
    return torch.randint(2**31 - 1, (2,), dtype=torch.int32, device=device).split(1)


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx, memory, queries, stop_key, bias, energy, settings, seeds):  # noqa: ANN001
        ctx.set_materialize_grads(False)
        way = _Way(settings, seeds, memory, queries, stop_key, bias, energy)
        energy = way.energy()
        alignment, delays = align(energy, *way.decided)
        large = settings.decisions.every == 1
        kept = (None if large and stop_key is not None else energy, None if large else alignment)
        ctx.save_for_backward(memory, queries, stop_key, bias, *kept)
        ctx.settings, ctx.seeds = settings, seeds
        clean = None
        if settings.energies and stop_key is not None:
            clean = way.energy(noise=0.0) if settings.noise else energy
        return way.context(alignment), delays, clean

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, to_context, to_delays, to_clean):  # noqa: ANN001
        memory, queries, stop_key, bias, energy, alignment = ctx.saved_tensors
        settings = ctx.settings
        way = _Way(settings, ctx.seeds, memory, queries, stop_key, bias, energy)
        if energy is None:
            energy = way.energy()
        if alignment is None:
            alignment, _ = align(energy, *way.decided)
        batch, _, units, _ = alignment.shape
        to_context = _given(to_context, memory, batch, units, way.size)
        to_delays = _given(to_delays, alignment, *alignment.shape[:3])
        to_queries: Any = None if queries is None else queries.new_empty(queries.shape)
        to_alignment, to_memory = way.context_gradients(to_context, alignment, to_queries)
        to_energy: Any = None
        to_stop_key = to_bias = None
        if stop_key is not None or ctx.needs_input_grad[4]:
            to_energy = align_backward(to_alignment, to_delays, energy, alignment, *way.decided)
        if stop_key is not None:
            if to_clean is not None:
                to_energy += to_clean
            to_stop_key = way.energy_gradients(to_energy, to_queries)
            to_bias = None if bias is None else to_energy.sum(dtype=bias.dtype)
            to_energy = None
        return to_memory, to_queries, to_stop_key, to_bias, to_energy, None, None


class _Way:
    """From queries, keys and values to what is read; and the gradients on the way back."""

    def __init__(
        self,
        settings: HeadSettings,
        seeds: Sequence[Tensor | None],
        memory: Tensor,
        queries: Any,  # a tensor, for heads that look back or have a key of stopping
        stop_key: Any,  # a tensor, unless the energies are given
        bias: Tensor | None,
        energy: Tensor | None,
    ):
        self.settings, self.heads, self.memory = settings, settings.heads, memory
        self.stop_key, self.bias, self.given = stop_key, bias, energy
        self.size = memory.shape[2] // 2 if settings.soft else memory.shape[2]
        self.noise_seed, seed = seeds
        if stop_key is not None:
            self.stop_query = queries[..., -self.size :]
        ends, self.dropout = settings.decisions.ends.contiguous(), (seed, settings.dropout)
        self.decided = settings.decisions.counts.contiguous(), ends
        if settings.soft:
            places = settings.decisions.places
            self.look = Look(queries, memory, places, ends, self.heads, *self.dropout)

    def energy(self, noise: float | None = None) -> Tensor:
        """Energies of stopping [B, H, U, G]"""
        if self.given is not None:
            return self.given
        query, key = (side_by_side(x, self.heads) for x in (self.stop_query, self.stop_key))
        energy = self.memory.new_empty(len(self.memory), self.heads, query.rows, key.rows)
        noise = self.settings.noise if noise is None else noise
        random = ("noise", self.noise_seed, noise)
        scale = query.columns**-0.5
        multiply(query, key.transposed, one_by_one(energy), scale, self.bias, random)
        return energy

    def energy_gradients(self, to_energy: Tensor, to_queries: Tensor) -> Tensor:
        """On the keys of stopping; that on the queries is written to its part of to_queries."""
        query, key = (side_by_side(x, self.heads) for x in (self.stop_query, self.stop_key))
        scale, to_scores = query.columns**-0.5, one_by_one(to_energy)
        to_key = self.stop_key.new_empty(self.stop_key.shape)
        multiply(to_scores, key, side_by_side(to_queries[..., -self.size :], self.heads), scale)
        multiply(to_scores.transposed, query, side_by_side(to_key, self.heads), scale)
        return to_key

    def context(self, alignment: Tensor) -> Tensor:
        """What is read [B, U, D]"""
        if self.settings.soft:
            return self.look.back(alignment)
        context = self.memory.new_empty(len(self.memory), alignment.shape[2], self.size)
        value, out = side_by_side(self.memory, self.heads), side_by_side(context, self.heads)
        multiply(one_by_one(alignment), value, out, random=("drop left", *self.dropout))
        return context

    def context_gradients(
        self, grad: Tensor, alignment: Tensor, to_queries: Any
    ) -> tuple[Tensor, Tensor]:
        """On the alignment and the memory; that on the queries is written to to_queries."""
        if self.settings.soft:
            return self.look.gradients(grad, alignment, to_queries[..., : self.size])
        to_memory, to_alignment = (
            self.memory.new_empty(self.memory.shape),
            torch.empty_like(alignment),
        )
        value, to_context = side_by_side(self.memory, self.heads), side_by_side(grad, self.heads)
        weights, to_weights = one_by_one(alignment), one_by_one(to_alignment)
        multiply(to_context, value.transposed, to_weights, random=("drop out", *self.dropout))
        to_value = side_by_side(to_memory, self.heads)
        multiply(weights.transposed, to_context, to_value, random=("drop left", *self.dropout))
        return to_alignment, to_memory


_X = TypeVar("_X", Tensor, Tensor | None)


def _whole(x: _X) -> _X:
    """Vectors may lie anywhere, but their numbers next to each other."""
    return x if x is None or x.stride(-1) == 1 else x.contiguous()


def _given(grad: Tensor | None, like: Tensor, *shape: int) -> Tensor:
    """A gradient as kernels want it: there and contiguous."""
    return like.new_zeros(shape) if grad is None else grad.contiguous()
