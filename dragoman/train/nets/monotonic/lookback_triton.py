"""Infinite lookback in Triton: a mixture of the softmax attention of every prefix, in one stream.

Unit i attends to the states up to k with probability a_k. With P_j = exp(u_j) and the mass of a
prefix Z_k = P_1 + ... + P_k, what it reads is

    sum_k a_k / Z_k (P_1 v_1 + ... + P_k v_k)

A program takes a tile of units and goes through the states chunk after chunk, as flash attention
does: it carries the mass and the sum of P v of all chunks before, relative to the largest u so far,
and what the decisions of this chunk read of those is one number each. Inside a chunk, prefix sums
give the rest. Weights of the size [U, S] are never stored.

With d_j the gradient on the weight of j, its mean under each prefix,
M_k = (P_1 d_1 + ... + P_k d_k) / Z_k, is the gradient on a_k. Then with two sums over the decisions
at j and after it,

    R_j = sum_{k>=j} a_k / Z_k     E_j = sum_{k>=j} a_k M_k / Z_k     du_j = P_j (R_j d_j - E_j)

One kernel goes along the states for M and notes what stands at the chunks' borders (`carries`);
the other then does all chunks at once.

An energy more than LOW below the largest one of its chunk counts as that: no mass is ever 0.
"""

# ruff: noqa: ANN001  (a kernel's arguments are pointers and numbers)

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.train.nets.monotonic.products_triton import (
    keep,
    multiply,
    one_by_one,
    pieces,
    power,
    side_by_side,
)

LOW = tl.constexpr(-80.0)
CARRIED = tl.constexpr(5)  # numbers that a unit carries over a border: see `_look_means`


@triton.jit
def _rows(tensor, row, rows, stride, column, HEAD: tl.constexpr):
    """A tile [T, K] of one head's vectors, zero where there are none."""
    there = (row[:, None] < rows) & (column[None, :] < HEAD)
    return tl.load(tensor + row[:, None] * stride + column[None, :], mask=there, other=0.0)


@triton.jit
def _scores(q, k, state, length, scale):
    """Energies u of a tile, far below everything where there is no state."""
    u = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    return tl.where(state[None, :] < length, u, -1e30)


@triton.jit
def _mass(u, top, state, length):
    """P relative to exp(top)"""
    return tl.where(state[None, :] < length, tl.exp(tl.maximum(u - top[:, None], LOW)), 0.0)


@triton.jit
def _decided(alignment, places, unit, units, groups, state, length):
    """The alignment a of the decisions that end on these states, where they are [S, U], and which.

    Left alone, Triton would spread units over the threads of a warp and states over warps, as it
    does for addresses that it knows nothing of, and do all that follows so: loads would be far
    apart and prefix sums slow. Hence states come first here, and the sum over one element each.
    """
    place = tl.load(places + state, mask=state < length, other=-1)
    at = unit[None, :] * groups + place[:, None]
    there = (unit[None, :] < units) & (place[:, None] >= 0)
    a = tl.load((alignment + at)[:, :, None], mask=there[:, :, None], other=0.0)
    return tl.trans(tl.sum(a, axis=2)), at, there


SIZES = ["units", "groups", "states"]  # of which there are many in one training


@triton.jit(do_not_specialize=SIZES)
def _look(
    queries,
    memory,
    alignment,
    places,
    ends,
    context,
    scale,
    units,
    groups,
    states,
    query_batch,
    query_row,
    memory_batch,
    memory_row,
    size,
    seed,
    rate,
    HEADS: tl.constexpr,
    HEAD: tl.constexpr,
    K: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
    DROP: tl.constexpr,
):
    n = tl.program_id(0).to(tl.int64)
    item, head = n // HEADS, n % HEADS
    unit, column = tl.program_id(1) * TILE + tl.arange(0, TILE), tl.arange(0, K)
    length = tl.load(ends + item * groups + groups - 1).to(tl.int32)
    keys = memory + item * memory_batch + head * HEAD
    queries += item * query_batch + head * HEAD
    context += item * units * size + head * HEAD
    alignment += n * units * groups
    places += item * states
    q = _rows(queries, unit, units, query_row, column, HEAD)
    top = tl.full([TILE], -1e30, dtype=tl.float32)
    mass = tl.zeros([TILE], dtype=tl.float32)
    before = tl.zeros([TILE, K], dtype=tl.float32)  # the sum of P v of earlier chunks
    read = tl.zeros([TILE, K], dtype=tl.float32)
    for begin in range(0, length, CHUNK):
        state = begin + tl.arange(0, CHUNK)
        k = _rows(keys, state, length, memory_row, column, HEAD)
        v = _rows(keys + size, state, length, memory_row, column, HEAD)
        u = _scores(q, k, state, length, scale)
        higher = tl.maximum(top, tl.max(u, axis=1))
        fade = tl.exp(top - higher)
        top = higher
        p = _mass(u, top, state, length)
        mass *= fade
        a, _, _ = _decided(alignment, places, unit, units, groups, state, length)
        c = a / (mass[:, None] + tl.cumsum(p, axis=1))
        w = p * tl.cumsum(c, axis=1, reverse=True)
        mass += tl.sum(p, axis=1)
        if DROP:
            place = unit[:, None] * states + state[None, :]
            kept = keep(tl.full([TILE, CHUNK], 1.0, dtype=tl.float32), n, place, seed, rate)
            w *= kept
            p *= kept
        before *= fade[:, None]
        read += tl.sum(c, axis=1)[:, None] * before
        read += tl.dot(w.to(v.dtype), v, input_precision="ieee")
        before += tl.dot(p.to(v.dtype), v, input_precision="ieee")
    there = (unit[:, None] < units) & (column[None, :] < HEAD)
    at = context + unit[:, None] * size + column[None, :]
    tl.store(at, read.to(context.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=SIZES)
def _look_means(
    queries,
    memory,
    alignment,
    places,
    ends,
    grad,
    to_alignment,
    carries,
    scale,
    units,
    groups,
    states,
    query_batch,
    query_row,
    memory_batch,
    memory_row,
    size,
    seed,
    rate,
    HEADS: tl.constexpr,
    HEAD: tl.constexpr,
    K: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
    DROP: tl.constexpr,
):
    """Stores M, and for each border: the largest u so far, relative to which are the mass and the
    sum of P d before it, and (in the second loop) R and E after the chunk that begins there."""
    n = tl.program_id(0).to(tl.int64)
    item, head = n // HEADS, n % HEADS
    unit, column = tl.program_id(1) * TILE + tl.arange(0, TILE), tl.arange(0, K)
    length = tl.load(ends + item * groups + groups - 1).to(tl.int32)
    keys = memory + item * memory_batch + head * HEAD
    queries += item * query_batch + head * HEAD
    grad += item * units * size + head * HEAD
    alignment += n * units * groups
    to_alignment += n * units * groups
    places += item * states
    border = carries + n * tl.cdiv(states, CHUNK) * CARRIED * units + unit
    real = unit < units
    q = _rows(queries, unit, units, query_row, column, HEAD)
    g = _rows(grad, unit, units, size, column, HEAD)
    top = tl.full([TILE], -1e30, dtype=tl.float32)
    mass = tl.zeros([TILE], dtype=tl.float32)
    gain = tl.zeros([TILE], dtype=tl.float32)  # the sum of P d of earlier chunks
    for begin in range(0, length, CHUNK):
        state = begin + tl.arange(0, CHUNK)
        k = _rows(keys, state, length, memory_row, column, HEAD)
        v = _rows(keys + size, state, length, memory_row, column, HEAD)
        u = _scores(q, k, state, length, scale)
        d = tl.dot(g, tl.trans(v), input_precision="ieee")
        if DROP:
            d = keep(d, n, unit[:, None] * states + state[None, :], seed, rate)
        higher = tl.maximum(top, tl.max(u, axis=1))
        fade = tl.exp(top - higher)
        top = higher
        p = _mass(u, top, state, length)
        mass *= fade
        gain *= fade
        tl.store(border, top, mask=real)
        tl.store(border + units, mass, mask=real)
        tl.store(border + 2 * units, gain, mask=real)
        a, at, there = _decided(alignment, places, unit, units, groups, state, length)
        z = mass[:, None] + tl.cumsum(p, axis=1)
        mean = (gain[:, None] + tl.cumsum(p * d, axis=1)) / z
        tl.store(to_alignment + at, tl.trans(mean), mask=there)
        c = a / z
        tl.store(border + 3 * units, tl.sum(c, axis=1), mask=real)
        tl.store(border + 4 * units, tl.sum(c * mean, axis=1), mask=real)
        mass += tl.sum(p, axis=1)
        gain += tl.sum(p * d, axis=1)
        border += CARRIED * units

    tl.debug_barrier()
    r = tl.zeros([TILE], dtype=tl.float32)
    e = tl.zeros([TILE], dtype=tl.float32)
    for _ in range(0, length, CHUNK):
        border -= CARRIED * units
        here = tl.load(border, mask=real, other=0.0)
        fade = tl.exp(here - top)
        top = here
        r *= fade
        e *= fade
        own_r = tl.load(border + 3 * units, mask=real, other=0.0)
        own_e = tl.load(border + 4 * units, mask=real, other=0.0)
        tl.debug_barrier()
        tl.store(border + 3 * units, r, mask=real)
        tl.store(border + 4 * units, e, mask=real)
        r += own_r
        e += own_e


@triton.jit(do_not_specialize=SIZES)
def _look_states(
    queries,
    memory,
    alignment,
    places,
    ends,
    grad,
    carries,
    to_memory,
    to_scores,
    scale,
    units,
    groups,
    states,
    query_batch,
    query_row,
    memory_batch,
    memory_row,
    size,
    seed,
    rate,
    HEADS: tl.constexpr,
    HEAD: tl.constexpr,
    K: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
    DROP: tl.constexpr,
):
    """Gradients on the keys and values of one chunk, and on the energies u of it."""
    n = tl.program_id(0).to(tl.int64)
    item, head = n // HEADS, n % HEADS
    state, column = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK), tl.arange(0, K)
    length = tl.load(ends + item * groups + groups - 1).to(tl.int32)
    carried = tl.where(tl.program_id(1) * CHUNK < length, units, 0)  # units that came so far
    keys = memory + item * memory_batch + head * HEAD
    queries += item * query_batch + head * HEAD
    grad += item * units * size + head * HEAD
    alignment += n * units * groups
    places += item * states
    to_scores += n * units * states
    borders = carries + (n * tl.cdiv(states, CHUNK) + tl.program_id(1)) * CARRIED * units
    k = _rows(keys, state, length, memory_row, column, HEAD)
    v = _rows(keys + size, state, length, memory_row, column, HEAD)
    to_k = tl.zeros([CHUNK, K], dtype=tl.float32)
    to_v = tl.zeros([CHUNK, K], dtype=tl.float32)
    for begin in range(0, units, TILE):
        unit = begin + tl.arange(0, TILE)
        real = unit < carried
        q = _rows(queries, unit, units, query_row, column, HEAD)
        g = _rows(grad, unit, units, size, column, HEAD)
        u = _scores(q, k, state, length, scale)
        d = tl.dot(g, tl.trans(v), input_precision="ieee")
        p = _mass(u, tl.load(borders + unit, mask=real, other=0.0), state, length)
        mass = tl.load(borders + units + unit, mask=real, other=1.0)
        gain = tl.load(borders + 2 * units + unit, mask=real, other=0.0)
        r = tl.load(borders + 3 * units + unit, mask=real, other=0.0)
        e = tl.load(borders + 4 * units + unit, mask=real, other=0.0)
        a, _, _ = _decided(alignment, places, unit, units, groups, state, length)
        kept = tl.full([TILE, CHUNK], 1.0, dtype=tl.float32)
        if DROP:
            kept = keep(kept, n, unit[:, None] * states + state[None, :], seed, rate)
            d *= kept
        z = mass[:, None] + tl.cumsum(p, axis=1)
        mean = (gain[:, None] + tl.cumsum(p * d, axis=1)) / z
        c = a / z
        w = p * (r[:, None] + tl.cumsum(c, axis=1, reverse=True))
        expected = p * (e[:, None] + tl.cumsum(c * mean, axis=1, reverse=True))
        to_u = ((w * d - expected) * scale).to(q.dtype)
        to_k += tl.dot(tl.trans(to_u), q, input_precision="ieee")
        to_v += tl.dot(tl.trans((w * kept).to(g.dtype)), g, input_precision="ieee")
        at = to_scores + unit[:, None] * states + state[None, :]
        tl.store(at, to_u, mask=(unit[:, None] < units) & (state[None, :] < states))
    there = (state[:, None] < states) & (column[None, :] < HEAD)
    at = to_memory + (item * states + state[:, None]) * 2 * size + head * HEAD + column[None, :]
    tl.store(at, to_k.to(to_memory.dtype.element_ty), mask=there)
    tl.store(at + size, to_v.to(to_memory.dtype.element_ty), mask=there)


class Look:
    """One look back: queries [B, U, D] and memory [B, S, 2 D] (keys, then values) as linear maps
    give them, places [B, S] (`Decisions.places`), ends [B, G], a rate of dropout and its seed."""

    def __init__(
        self,
        queries: Tensor,
        memory: Tensor,
        places: Tensor,
        ends: Tensor,
        heads: int,
        seed: Tensor | None,  # where there is dropout
        dropout: float,
    ):
        self.queries, self.memory, self.places, self.ends = queries, memory, places, ends
        self.units, self.states, self.size = queries.shape[1], memory.shape[1], memory.shape[2] // 2
        self.heads, self.rows, head = heads, len(memory) * heads, self.size // heads
        sizes = (self.units, ends.shape[1], self.states)
        strides = (queries.stride(0), queries.stride(1), memory.stride(0), memory.stride(1))
        self.numbers = (head**-0.5, *sizes, *strides, self.size, seed, dropout)
        single = memory.dtype == torch.float32  # whose products need more registers
        self.tile, self.chunk = (16, 32) if single else (32, 64)
        columns = power(head)
        self.blocks = {
            "HEADS": heads,
            "HEAD": head,
            "K": columns,
            "TILE": self.tile,
            "CHUNK": self.chunk,
            "DROP": dropout > 0,
            "num_warps": 4 if columns <= 64 else 8,
            "num_stages": 2,
        }

    def back(self, alignment: Tensor) -> Tensor:
        """What is read [B, U, D] under an alignment [B, H, U, G]"""
        context = self.queries.new_empty(len(self.memory), self.units, self.size)
        tensors = (self.queries, self.memory, alignment, self.places, self.ends, context)
        _look[(self.rows, pieces(self.units, self.tile))](*tensors, *self.numbers, **self.blocks)
        return context

    def gradients(
        self, grad: Tensor, alignment: Tensor, to_queries: Tensor
    ) -> tuple[Tensor, Tensor]:
        """On the alignment [B, H, U, G] and the memory [B, S, 2 D]; that on the queries is written
        to to_queries [B, U, D]. grad [B, U, D] is contiguous."""
        chunks = pieces(self.states, self.chunk)
        carries = alignment.new_empty(self.rows, chunks, CARRIED.value, self.units)
        to_alignment = torch.empty_like(alignment)
        tensors = (self.queries, self.memory, alignment, self.places, self.ends, grad)
        _look_means[(self.rows, pieces(self.units, self.tile))](
            *tensors, to_alignment, carries, *self.numbers, **self.blocks
        )
        to_memory = self.memory.new_empty(self.memory.shape)
        to_scores = self.memory.new_empty(len(grad), self.heads, self.units, self.states)
        _look_states[(self.rows, chunks)](
            *tensors, carries, to_memory, to_scores, *self.numbers, **self.blocks
        )
        keys = side_by_side(self.memory[..., : self.size], self.heads)
        multiply(one_by_one(to_scores), keys, side_by_side(to_queries, self.heads))
        return to_alignment, to_memory
