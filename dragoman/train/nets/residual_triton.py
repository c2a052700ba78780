"""The kernels of `residual.py`: rows [R, D], as many to a program as fit into its registers."""

# ruff: noqa: ANN001  (a kernel's arguments are pointers and numbers)

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE = 2048  # numbers of a tile
PARTS = 1024  # programs of the backward pass, each with its share of the weights' gradients


@triton.jit
def _forward(x, branch, weight, bias, seed, out, normed, means, scales, rows, size, scale, keep,
             eps, ROWS: tl.constexpr, WIDTH: tl.constexpr, DROPS: tl.constexpr):  # fmt: skip
    """Add what is kept of the branch, and normalise the sum."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    real = column < size
    inside = (row < rows)[:, None] & real[None, :]
    place = row[:, None] * size + column[None, :]
    added = tl.load(branch + place, mask=inside, other=0.0).to(tl.float32) * scale
    if DROPS:
        drawn = tl.rand(tl.load(seed), place.to(tl.int32))
        added = tl.where(drawn < keep, added / keep, 0.0)
    total = tl.load(x + place, mask=inside, other=0.0).to(tl.float32) + added
    tl.store(out + place, total, mask=inside)
    mean = tl.sum(total, 1) / size
    centred = tl.where(inside, total - mean[:, None], 0.0)
    unit = 1.0 / tl.sqrt(tl.sum(centred * centred, 1) / size + eps)
    weights = tl.load(weight + column, mask=real, other=0.0).to(tl.float32)
    shift = tl.load(bias + column, mask=real, other=0.0).to(tl.float32)
    tl.store(normed + place, centred * unit[:, None] * weights[None, :] + shift[None, :],
             mask=inside)  # fmt: skip
    tl.store(means + row, mean, mask=row < rows)
    tl.store(scales + row, unit, mask=row < rows)


@triton.jit
def _backward(to_out, to_normed, out, weight, seed, means, scales, to_x, to_branch, to_weight,
              to_bias, rows, size, scale, keep, each, ROWS: tl.constexpr, WIDTH: tl.constexpr,
              DROPS: tl.constexpr):  # fmt: skip
    """Gradients on both summands of some rows, and what these rows add to the weights'."""
    column = tl.arange(0, WIDTH)
    real = column < size
    weights = tl.load(weight + column, mask=real, other=0.0).to(tl.float32)
    sum_weight = tl.zeros([WIDTH], tl.float32)
    sum_bias = tl.zeros([WIDTH], tl.float32)
    first = tl.program_id(0).to(tl.int64) * each
    for start in range(0, each, ROWS):
        row = first + start + tl.arange(0, ROWS)
        known = (row < rows) & (start + tl.arange(0, ROWS) < each)
        inside = known[:, None] & real[None, :]
        place = row[:, None] * size + column[None, :]
        mean = tl.load(means + row, mask=known, other=0.0)
        unit = tl.load(scales + row, mask=known, other=0.0)
        total = tl.load(out + place, mask=inside, other=0.0).to(tl.float32)
        given = tl.load(to_normed + place, mask=inside, other=0.0).to(tl.float32)
        straight = tl.load(to_out + place, mask=inside, other=0.0).to(tl.float32)
        norm = tl.where(inside, (total - mean[:, None]) * unit[:, None], 0.0)
        sum_weight += tl.sum(given * norm, 0)
        sum_bias += tl.sum(given, 0)
        inner = given * weights[None, :]
        along = tl.sum(inner * norm, 1) / size
        level = tl.sum(inner, 1) / size
        grad = (inner - norm * along[:, None] - level[:, None]) * unit[:, None] + straight
        tl.store(to_x + place, grad, mask=inside)
        part = grad * scale
        if DROPS:
            drawn = tl.rand(tl.load(seed), place.to(tl.int32))
            part = tl.where(drawn < keep, part / keep, 0.0)
        tl.store(to_branch + place, part, mask=inside)
    share = tl.program_id(0) * size + column
    tl.store(to_weight + share, sum_weight, mask=real)
    tl.store(to_bias + share, sum_bias, mask=real)


def add_and_norm(
    x: Tensor,
    branch: Tensor,
    norm: tuple[Tensor, Tensor],
    seed: Tensor,
    numbers: tuple[float, float, float],
    kind: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, branch [..., D], contiguous -> the sum, what the norm makes of it, its statistics."""
    scale, drop, eps = numbers
    size = x.shape[-1]
    rows = x.numel() // size
    out, normed = torch.empty_like(x), torch.empty_like(x, dtype=kind)
    means, scales = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
    width = triton.next_power_of_2(size)
    tile = max(1, TILE // width)
    _forward[(triton.cdiv(rows, tile),)](
        *(x, branch, *norm, seed, out, normed, means, scales, rows, size, scale, 1 - drop, eps),
        **{"ROWS": tile, "WIDTH": width, "DROPS": drop > 0},
    )
    return out, normed, means, scales


def gradients(
    given: tuple[Tensor, Tensor],
    kept: tuple[Tensor, Tensor, Tensor, Tensor, Tensor],
    numbers: tuple[float, float],
    kind: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """On x, the branch (of a `kind` of its own), the norm's weight and bias [2, D].

    `kept` is the sum, the weight, the seed, the statistics.
    """
    to_out, to_normed = given
    out, weight, seed, means, scales = kept
    scale, drop = numbers
    size, rows = out.shape[-1], means.numel()
    width = triton.next_power_of_2(size)
    tile = max(1, TILE // width)
    each = triton.cdiv(triton.cdiv(rows, PARTS), tile) * tile
    parts = triton.cdiv(rows, each)
    to_x, to_branch = torch.empty_like(out), torch.empty_like(out, dtype=kind)
    sums = torch.empty(2, parts, size, dtype=torch.float32, device=out.device)
    _backward[(parts,)](
        *(to_out, to_normed, out, weight, seed, means, scales, to_x, to_branch, sums[0], sums[1]),
        *(rows, size, scale, 1 - drop, each),
        **{"ROWS": tile, "WIDTH": width, "DROPS": drop > 0},
    )
    return to_x, to_branch, sums.sum(1).to(weight.dtype)
