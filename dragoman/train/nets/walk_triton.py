"""The walks of `walk.py` as one Triton kernel each: the same functions, for tensors on CUDA.

A program holds one row of source states in registers. The reader's program walks through the target
steps in order, so a whole alignment costs one launch and touches memory once; it fetches the next
row while it walks this one.
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
def _add_scaled(high1, sum1, high2, sum2):
    """sum1 exp(high1) + sum2 exp(high2), as such a pair."""
    high = tl.maximum(high1, high2)
    return high, sum1 * tl.exp(high1 - high) + sum2 * tl.exp(high2 - high)


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
    at = n * steps * states
    here = _load_closed(energy + at, column, last)
    before = _load_closed(energy + at, column - 1, last)
    for i in range(steps):
        ahead = at + tl.where(i + 1 < steps, states, 0)
        next_here = _load_closed(energy + ahead, column, last)
        next_before = _load_closed(energy + ahead, column - 1, last)
        came = tl.where(column == 0, 0.0, tl.sigmoid(-before))
        _, passed = tl.associative_scan((came, row), 0, _chain)
        row = tl.sigmoid(here) * passed
        tl.store(alignment + at + column, row, mask=column < states)
        at = ahead
        here = next_here
        before = next_before


@triton.jit
def _align_backward(grad, energy, alignment, lengths, out, steps, states, BLOCK: tl.constexpr):
    n = tl.program_id(0).to(tl.int64)
    last = tl.load(lengths + n) - 1
    column = tl.arange(0, BLOCK)
    real = column < states
    value = tl.zeros([BLOCK], dtype=tl.float32)
    at = (n * steps + steps - 1) * states
    e = _load_closed(energy + at, column, last)
    a = tl.load(alignment + at + column, mask=real, other=0.0)
    g = tl.load(grad + at + column, mask=real, other=0.0)
    for i in range(steps):
        ahead = at - tl.where(i + 1 < steps, states, 0)
        next_e = _load_closed(energy + ahead, column, last)
        next_a = tl.load(alignment + ahead + column, mask=real, other=0.0)
        next_g = tl.load(grad + ahead + column, mask=real, other=0.0)
        reward = g + value
        _, value = tl.associative_scan(
            (tl.sigmoid(-e), tl.sigmoid(e) * reward), 0, _chain, reverse=True
        )
        tl.store(out + at + column, a * (reward - value), mask=real)
        at = ahead
        e = next_e
        a = next_a
        g = next_g


@triton.jit
def _load_groups(energy, group, inside, length, ratio):
    """Energies u of one row by groups [RATIO, GROUPS], hidden where there are none; and
    sum exp(u) of each group as (high, sum of exp(u - high)), [GROUPS] each."""
    state = group[None, :] * ratio + inside[:, None]
    there = (inside[:, None] < ratio) & (state < length)
    u = tl.load(energy + state, mask=there, other=-1e4).to(tl.float32)
    high = tl.max(u, axis=0)
    return u, high, tl.sum(tl.exp(u - high[None, :]), axis=0)


@triton.jit
def _weights(energy, group, inside, length, ratio):
    """Softmax within groups; w_k and 1 - w_{k+1} of groups."""
    u, high, mass = _load_groups(energy, group, inside, length, ratio)
    _, next_high, next_mass = _load_groups(energy, group + 1, inside, length, ratio)
    top, total = tl.associative_scan((high, mass), 0, _add_scaled)
    inner = tl.exp(u - high[None, :]) / mass[None, :]
    weight = mass * tl.exp(high - top) / total
    stay = total / (total + next_mass * tl.exp(next_high - top))
    return inner, weight, stay


@triton.jit
def _look_back(
    alignment,
    energy,
    lengths,
    out,
    steps,
    groups,
    states,
    ratio,
    GROUPS: tl.constexpr,
    RATIO: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths + row // steps)
    group, inside = tl.arange(0, GROUPS), tl.arange(0, RATIO)
    inner, weight, stay = _weights(energy + row * states, group, inside, length, ratio)
    a = tl.load(alignment + row * groups + group, mask=group < groups, other=0.0)
    _, seen = tl.associative_scan((stay, a), 0, _chain, reverse=True)
    state = group[None, :] * ratio + inside[:, None]
    there = (inside[:, None] < ratio) & (state < states)
    tl.store(out + row * states + state, inner * (weight * seen)[None, :], mask=there)


@triton.jit
def _look_back_backward(
    grad,
    alignment,
    energy,
    lengths,
    to_alignment,
    to_energy,
    steps,
    groups,
    states,
    ratio,
    GROUPS: tl.constexpr,
    RATIO: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths + row // steps)
    group, inside = tl.arange(0, GROUPS), tl.arange(0, RATIO)
    inner, weight, stay = _weights(energy + row * states, group, inside, length, ratio)
    a = tl.load(alignment + row * groups + group, mask=group < groups, other=0.0)
    state = group[None, :] * ratio + inside[:, None]
    there = (inside[:, None] < ratio) & (state < states)
    g = tl.load(grad + row * states + state, mask=there, other=0.0).to(tl.float32)
    gain = weight * tl.sum(inner * g, axis=0)
    _, mean = tl.associative_scan((1 - weight, gain), 0, _chain)
    _, seen = tl.associative_scan((stay, a), 0, _chain, reverse=True)
    _, expected = tl.associative_scan((stay, a * mean), 0, _chain, reverse=True)
    tl.store(to_alignment + row * groups + group, mean, mask=group < groups)
    back = inner * weight[None, :] * (seen[None, :] * g - expected[None, :])
    tl.store(to_energy + row * states + state, back, mask=there)


def align(energy: Tensor, lengths: Tensor) -> Tensor:
    energy = energy.contiguous()
    rows, steps, states = energy.shape
    out = torch.empty_like(energy, dtype=torch.float32)
    _align[(rows,)](energy, lengths, out, steps, states, BLOCK=_block(states), **_warps(states))
    return out


def align_backward(grad: Tensor, energy: Tensor, alignment: Tensor, lengths: Tensor) -> Tensor:
    grad, energy, alignment = grad.contiguous(), energy.contiguous(), alignment.contiguous()
    rows, steps, states = energy.shape
    out = torch.empty_like(energy)
    shape = {"BLOCK": _block(states), **_warps(states)}
    _align_backward[(rows,)](grad, energy, alignment, lengths, out, steps, states, **shape)
    return out


def look_back(alignment: Tensor, energy: Tensor, lengths: Tensor, ratio: int) -> Tensor:
    alignment, energy = alignment.contiguous(), energy.contiguous()
    out = torch.empty_like(energy)
    sizes, shape = _sizes(alignment, energy, ratio)
    _look_back[(energy[..., 0].numel(),)](alignment, energy, lengths, out, *sizes, **shape)
    return out


def look_back_backward(
    grad: Tensor, alignment: Tensor, energy: Tensor, lengths: Tensor, ratio: int
) -> tuple[Tensor, Tensor]:
    grad, alignment, energy = grad.contiguous(), alignment.contiguous(), energy.contiguous()
    to_alignment, to_energy = torch.empty_like(alignment), torch.empty_like(energy)
    sizes, shape = _sizes(alignment, energy, ratio)
    _look_back_backward[(energy[..., 0].numel(),)](
        grad, alignment, energy, lengths, to_alignment, to_energy, *sizes, **shape
    )
    return to_alignment, to_energy


def _sizes(alignment: Tensor, energy: Tensor, ratio: int) -> tuple[tuple[int, ...], dict[str, int]]:
    """Steps, groups, states, ratio; and the block that holds a row."""
    groups, states = alignment.shape[-1], energy.shape[-1]
    blocks = {"GROUPS": _block(groups), "RATIO": triton.next_power_of_2(ratio)}
    return (energy.shape[1], groups, states, ratio), {**blocks, **_warps(states)}


def _block(columns: int) -> int:
    return max(16, triton.next_power_of_2(columns))


def _warps(columns: int) -> dict[str, int]:
    """About eight columns to a thread."""
    return {"num_warps": min(16, max(1, _block(columns) // 256))}
