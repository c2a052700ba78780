"""Products of small matrices, one for each head, that lie side by side in the projections' tensors.

`torch.matmul` would first copy them apart. What is done to one of the matrices on the way costs
nothing: dropout of what is multiplied or of what comes out, noise on what comes out. Random numbers
depend on a seed, the head and the place alone, so that they can be made again for the gradient. The
seed is read on the device: what a graph repeats may then draw others every time.
"""

# ruff: noqa: ANN001, ANN201  (a kernel's arguments are pointers and numbers)

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

ROUNDS = tl.constexpr(7)  # of Philox: the fewest that pass every test of randomness


@triton.jit
def keep(x, n, place, seed, rate):
    """Dropout of x, a block of what belongs to head n."""
    chance = tl.rand((n << 32) + tl.load(seed), place, ROUNDS)
    return tl.where(chance >= rate, x / (1 - rate), 0.0)


@triton.jit
def _normal(n, place, seed):
    """Normal numbers by Box and Muller, from half the circle: the other half gives the same."""
    u, v, _, _ = tl.rand4x((n << 32) + tl.load(seed), place, ROUNDS)
    x = 3.14159265 * (v - 0.5)
    y = x * x
    sine = x * (1 - 0.16666667 * y * (1 - 0.05 * y * (1 - 0.02380952 * y * (1 - 0.01388889 * y))))
    return tl.sqrt(-2 * tl.log(tl.maximum(u, 1e-7))) * sine


@triton.jit(do_not_specialize=["rows", "inner", "columns"])
def _product(
    left,
    right,
    out,
    bias,
    scale,
    rows,
    inner,
    columns,
    left_batch,
    left_head,
    left_row,
    left_inner,
    right_batch,
    right_head,
    right_inner,
    right_column,
    out_batch,
    out_head,
    out_row,
    seed,
    amount,
    HEADS: tl.constexpr,
    RANDOM: tl.constexpr,
    BIAS: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    n = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    left += n // HEADS * left_batch + n % HEADS * left_head
    right += n // HEADS * right_batch + n % HEADS * right_head
    out += n // HEADS * out_batch + n % HEADS * out_head
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for begin in range(0, inner, INNER):
        across = begin + tl.arange(0, INNER)[None, :]
        down = begin + tl.arange(0, INNER)[:, None]
        place = row * left_row + across * left_inner
        x = tl.load(left + place, mask=(row < rows) & (across < inner), other=0.0)
        if RANDOM == "drop left":
            x = keep(x.to(tl.float32), n, place, seed, amount)
        y_at = right + down * right_inner + column * right_column
        y = tl.load(y_at, mask=(down < inner) & (column < columns), other=0.0)
        total += tl.dot(x.to(y.dtype), y, input_precision="ieee")
    total *= scale
    if BIAS:
        total += tl.load(bias).to(tl.float32)
    place = row * out_row + column
    if RANDOM == "drop out":
        total = keep(total, n, place, seed, amount)
    if RANDOM == "noise":
        total += amount * _normal(n, place, seed)
    tl.store(out + place, total.to(out.dtype.element_ty), mask=(row < rows) & (column < columns))


class Heads(NamedTuple):
    """A matrix for each head of each item, somewhere in a tensor."""

    tensor: Tensor
    rows: int
    columns: int
    strides: tuple[int, int, int, int]  # to the next item, head, row, column
    heads: int  # of an item

    @property
    def transposed(self) -> Heads:
        batch, head, row, column = self.strides
        return Heads(self.tensor, self.columns, self.rows, (batch, head, column, row), self.heads)


def side_by_side(x: Tensor, heads: int) -> Heads:
    """Of x [B, T, D], as linear maps give it: [T, K] for each head."""
    size = x.shape[2] // heads
    return Heads(x, x.shape[1], size, (x.stride(0), size, x.stride(1), 1), heads)


def one_by_one(x: Tensor) -> Heads:
    """Of a contiguous x [B, H, U, G]"""
    heads, rows, columns = x.shape[1:]
    return Heads(x, rows, columns, (heads * rows * columns, rows * columns, columns, 1), heads)


def multiply(
    left: Heads,
    right: Heads,
    out: Heads,
    scale: float = 1.0,
    bias: Tensor | None = None,
    random: tuple[str, Tensor | None, float] = ("", None, 0.0),
) -> None:
    """out = scale left right + bias; random: "noise", "drop left" or "drop out", seed, amount."""
    what, seed, amount = random if random[2] else ("", None, 0.0)
    rows, columns = _block(out.rows), _block(out.columns)
    grid = (
        out.tensor.shape[0] * out.heads,
        pieces(out.rows, rows),
        pieces(out.columns, columns),
    )
    _product[grid](
        left.tensor,
        right.tensor,
        out.tensor,
        bias,
        scale,
        out.rows,
        left.columns,
        out.columns,
        *left.strides,
        *right.strides,
        *out.strides[:3],
        seed,
        amount,
        HEADS=out.heads,
        RANDOM=what,
        BIAS=bias is not None,
        ROWS=rows,
        INNER=_block(left.columns),
        COLUMNS=columns,
        num_warps=4,
        num_stages=2,
    )


def pieces(size: int, piece: int) -> int:
    """How many it takes; `triton.cdiv` is slow outside of kernels."""
    return -(-size // piece)


def power(size: int) -> int:
    """The next power of 2, likewise; at least 16, which a product needs."""
    return max(16, 1 << (size - 1).bit_length())


def _block(size: int) -> int:
    return min(64, power(size))
