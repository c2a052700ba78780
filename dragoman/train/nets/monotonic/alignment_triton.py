"""The reader's walk of `alignment.py` as one Triton kernel, and its gradient as another.

A program holds one row of source states in registers and walks through the target steps in order,
so a whole alignment costs one launch and touches memory once; it fetches the next row while it
walks this one. The expected delays are summed on the way.
"""

# ruff: noqa: ANN001  (a kernel's arguments are pointers and numbers)

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.train.nets.monotonic.products_triton import power

MAX_DECISIONS = 8192  # one row must fit the registers of a program


@triton.jit
def _chain(keep1, x1, keep2, x2):
    """Two steps of y = keep y + x as one."""
    return keep1 * keep2, keep2 * x1 + x2


@triton.jit
def _load_closed(energy, column, last):
    """Energies of one row: the last real column stops for certain, columns after it never."""
    e = tl.load(energy + column, mask=(column >= 0) & (column < last), other=-1e4).to(tl.float32)
    return tl.where(column == last, 1e4, e)


@triton.jit
def _load_ends(ends, counts, item, columns, column):
    """How many states are heard at each decision, 0 past the last; and which is the last."""
    last = tl.load(counts + item) - 1
    end = tl.load(ends + item * columns + column, mask=column <= last, other=0)
    return end.to(tl.float32), last


@triton.jit(do_not_specialize=["steps", "columns"])
def _align(
    energy,
    counts,
    ends,
    alignment,
    delays,
    stride,
    steps,
    columns,
    HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    n = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    end, last = _load_ends(ends, counts, n // HEADS, columns, column)
    row = tl.where(column == 0, 1.0, 0.0)
    energy += n * stride
    alignment += n * steps * columns
    here = _load_closed(energy, column, last)
    before = _load_closed(energy, column - 1, last)
    for i in range(steps):
        energy += tl.where(i + 1 < steps, columns, 0)
        next_here = _load_closed(energy, column, last)
        next_before = _load_closed(energy, column - 1, last)
        came = tl.where(column == 0, 0.0, tl.sigmoid(-before))
        _, passed = tl.associative_scan((came, row), 0, _chain)
        row = tl.sigmoid(here) * passed
        tl.store(alignment + i * columns + column, row, mask=column < columns)
        tl.store(delays + n * steps + i, tl.sum(row * end, axis=0))
        here = next_here
        before = next_before


@triton.jit(do_not_specialize=["steps", "columns"])
def _align_backward(
    grad,
    delay_grad,
    energy,
    alignment,
    counts,
    ends,
    out,
    stride,
    steps,
    columns,
    HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    n = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    end, last = _load_ends(ends, counts, n // HEADS, columns, column)
    real = column < columns
    value = tl.zeros([BLOCK], dtype=tl.float32)
    at = (n * steps + steps - 1) * columns
    energy += n * stride + (steps - 1) * columns
    delay_grad += n * steps + steps - 1
    e = _load_closed(energy, column, last)
    a = tl.load(alignment + at + column, mask=real, other=0.0)
    g = tl.load(grad + at + column, mask=end > 0, other=0.0) + tl.load(delay_grad) * end
    for i in range(steps):
        back = tl.where(i + 1 < steps, columns, 0)
        energy -= back
        delay_grad -= tl.where(i + 1 < steps, 1, 0)
        next_e = _load_closed(energy, column, last)
        next_a = tl.load(alignment + at - back + column, mask=real, other=0.0)
        next_g = tl.load(grad + at - back + column, mask=end > 0, other=0.0)
        next_g += tl.load(delay_grad) * end
        reward = g + value
        _, value = tl.associative_scan(
            (tl.sigmoid(-e), tl.sigmoid(e) * reward), 0, _chain, reverse=True
        )
        tl.store(out + at + column, a * (reward - value), mask=real)
        at -= back
        e = next_e
        a = next_a
        g = next_g


def align(energy: Tensor, counts: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """Alignment [B, H, U, G] of energies [B, H, U, G], and the expected delays [B, H, U].

    Decisions end at ends [B, G], of which counts [B] are real.
    """
    energy, stride = _rows(energy)
    alignment = torch.empty(energy.shape, dtype=torch.float32, device=energy.device)
    delays = torch.empty(energy.shape[:3], dtype=torch.float32, device=energy.device)
    sizes = (stride, *energy.shape[2:])
    _align[_grid(energy)](energy, counts, ends, alignment, delays, *sizes, **_block(energy))
    return alignment, delays


def align_backward(
    grad: Tensor,
    delay_grad: Tensor,
    energy: Tensor,
    alignment: Tensor,
    counts: Tensor,
    ends: Tensor,
) -> Tensor:
    """Gradient on the energies [B, H, U, G] of those on alignment and delays; all are contiguous.

    Past the decisions that are real, `grad` may hold anything.
    """
    energy, stride = _rows(energy)
    out = torch.empty(energy.shape, dtype=energy.dtype, device=energy.device)
    sizes = (stride, *energy.shape[2:])
    _align_backward[_grid(energy)](
        grad, delay_grad, energy, alignment, counts, ends, out, *sizes, **_block(energy)
    )
    return out


def _rows(energy: Tensor) -> tuple[Tensor, int]:
    """The energies, and how far it is to the next head's: nowhere, if all heads have the same."""
    units, groups = energy.shape[2:]
    if energy.stride() == (0, 0, groups, 1):
        return energy, 0
    return energy.contiguous(), units * groups


def _grid(energy: Tensor) -> tuple[int]:
    return (energy.shape[0] * energy.shape[1],)


def _block(energy: Tensor) -> dict[str, int]:
    """A row, with about eight columns to a thread."""
    block = power(energy.shape[3])
    warps = min(16, max(1, block // 256))
    return {"HEADS": energy.shape[1], "BLOCK": block, "num_warps": warps}
