"""The walks of `walk.py`, one Triton kernel each: the same functions, for CUDA tensors in float32.

A program holds one row of source states in registers. The reader's program walks through the target
steps in order, so a whole alignment costs one launch and touches memory once.
"""

# ruff: noqa: ANN001  (a kernel's arguments are pointers and numbers)

import torch
import triton
import triton.language as tl
from torch import Tensor

MAX_STATES = 8192  # one row must fit the registers of a program


@triton.jit
def _chain(keep1, x1, keep2, x2):
    """Two steps of y = keep y + x as one."""
    return keep1 * keep2, keep2 * x1 + x2


@triton.jit
def _logaddexp(a, b):
    high = tl.maximum(a, b)
    return high + tl.log(tl.exp(a - high) + tl.exp(b - high))


@triton.jit
def _load_closed(energy, column, last):
    """Energies of one row: the last real column stops for certain, columns after it never."""
    e = tl.load(energy + column, mask=(column >= 0) & (column < last), other=-1e4).to(tl.float32)
    return tl.where(column == last, 1e4, e)


@triton.jit
def _align(energy, lengths, alignment, steps, states, BLOCK: tl.constexpr):
    n = tl.program_id(0).to(tl.int64)
    last = tl.load(lengths + n) - 1
    column = tl.arange(0, BLOCK)
    row = tl.where(column == 0, 1.0, 0.0)
    for i in range(steps):
        at = (n * steps + i) * states
        stop = tl.sigmoid(_load_closed(energy + at, column, last))
        came = tl.sigmoid(-_load_closed(energy + at, column - 1, last))
        came = tl.where(column == 0, 0.0, came)
        _, passed = tl.associative_scan((came, row), 0, _chain)
        row = stop * passed
        tl.store(alignment + at + column, row, mask=column < states)


@triton.jit
def _align_backward(grad, energy, alignment, lengths, out, steps, states, BLOCK: tl.constexpr):
    n = tl.program_id(0).to(tl.int64)
    last = tl.load(lengths + n) - 1
    column = tl.arange(0, BLOCK)
    real = column < states
    value = tl.zeros([BLOCK], dtype=tl.float32)
    for back in range(steps):
        at = (n * steps + steps - 1 - back) * states
        e = _load_closed(energy + at, column, last)
        reward = tl.load(grad + at + column, mask=real, other=0.0) + value
        go, gain = tl.sigmoid(-e), tl.sigmoid(e) * reward
        _, value = tl.associative_scan((go, gain), 0, _chain, reverse=True)
        a = tl.load(alignment + at + column, mask=real, other=0.0)
        tl.store(out + at + column, a * (reward - value), mask=real)


@triton.jit
def _prefix_weights(energy, column, states):
    """w_j and 1 - w_{j+1} of one row."""
    u = tl.load(energy + column, mask=column < states, other=-1e4).to(tl.float32)
    after = tl.load(energy + column + 1, mask=column + 1 < states, other=1e4).to(tl.float32)
    total = tl.associative_scan(u, 0, _logaddexp)
    return tl.exp(u - total), tl.sigmoid(total - after)


@triton.jit
def _look_back(alignment, energy, out, states, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * states
    column = tl.arange(0, BLOCK)
    real = column < states
    weight, stay = _prefix_weights(energy + at, column, states)
    a = tl.load(alignment + at + column, mask=real, other=0.0)
    _, seen = tl.associative_scan((stay, a), 0, _chain, reverse=True)
    tl.store(out + at + column, weight * seen, mask=real)


@triton.jit
def _look_back_backward(grad, alignment, energy, to_a, to_u, states, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * states
    column = tl.arange(0, BLOCK)
    real = column < states
    weight, stay = _prefix_weights(energy + at, column, states)
    a = tl.load(alignment + at + column, mask=real, other=0.0)
    g = tl.load(grad + at + column, mask=real, other=0.0)
    _, mean = tl.associative_scan((1 - weight, weight * g), 0, _chain)
    _, seen = tl.associative_scan((stay, a), 0, _chain, reverse=True)
    _, expected = tl.associative_scan((stay, a * mean), 0, _chain, reverse=True)
    tl.store(to_a + at + column, mean, mask=real)
    tl.store(to_u + at + column, weight * (seen * g - expected), mask=real)


def align(energy: Tensor, lengths: Tensor) -> Tensor:
    energy = energy.contiguous()
    rows, steps, states = energy.shape
    out = torch.empty_like(energy)
    _align[(rows,)](energy, lengths, out, steps, states, **_shape(states))
    return out


def align_backward(grad: Tensor, energy: Tensor, alignment: Tensor, lengths: Tensor) -> Tensor:
    grad, energy, alignment = grad.contiguous(), energy.contiguous(), alignment.contiguous()
    rows, steps, states = energy.shape
    out = torch.empty_like(energy)
    _align_backward[(rows,)](grad, energy, alignment, lengths, out, steps, states, **_shape(states))
    return out


def look_back(alignment: Tensor, energy: Tensor) -> Tensor:
    alignment, energy = alignment.contiguous(), energy.contiguous()
    rows, steps, states = energy.shape
    out = torch.empty_like(energy)
    _look_back[(rows * steps,)](alignment, energy, out, states, **_shape(states))
    return out


def look_back_backward(grad: Tensor, alignment: Tensor, energy: Tensor) -> tuple[Tensor, Tensor]:
    grad, alignment, energy = grad.contiguous(), alignment.contiguous(), energy.contiguous()
    rows, steps, states = energy.shape
    to_a, to_u = torch.empty_like(energy), torch.empty_like(energy)
    _look_back_backward[(rows * steps,)](
        grad, alignment, energy, to_a, to_u, states, **_shape(states)
    )
    return to_a, to_u


def _shape(states: int) -> dict[str, int]:
    """A block of the next power of two, and about eight columns to a thread."""
    block = max(32, triton.next_power_of_2(states))
    return {"BLOCK": block, "num_warps": min(16, max(1, block // 256))}
