"""The kernels of `depthwise.py`: states [B, T, D] with the channels next to each other."""

# ruff: noqa: ANN001  (a kernel's arguments are pointers and numbers)

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, CHANNELS, PARTS = 32, 64, 512


@triton.jit
def _convolve(x, weight, bias, out, time, size, TAPS: tl.constexpr, BIASED: tl.constexpr,
              ROWS: tl.constexpr, CHANNELS: tl.constexpr):  # fmt: skip
    """A tile of states: the sum over taps of a weight times the states so far away."""
    tiles = tl.cdiv(time, ROWS)
    tile = tl.program_id(0)
    item = (tile // tiles).to(tl.int64)
    row = (tile % tiles) * ROWS + tl.arange(0, ROWS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    real = channel < size
    x += item * time * size
    total = tl.zeros([ROWS, CHANNELS], tl.float32)
    if BIASED:
        total += tl.load(bias + channel, mask=real, other=0.0).to(tl.float32)[None, :]
    for tap in range(TAPS):
        there = row + (tap - TAPS // 2)
        inside = ((there >= 0) & (there < time))[:, None] & real[None, :]
        part = tl.load(x + there[:, None] * size + channel[None, :], mask=inside, other=0.0)
        one = tl.load(weight + tap * size + channel, mask=real, other=0.0)
        total += part.to(tl.float32) * one.to(tl.float32)[None, :]
    place = item * time * size + row[:, None] * size + channel[None, :]
    tl.store(out + place, total, mask=(row < time)[:, None] & real[None, :])


@triton.jit
def _weigh(grad, x, out, rows, time, size, each, TAPS: tl.constexpr, WIDTH: tl.constexpr,
           CHANNELS: tl.constexpr):  # fmt: skip
    """What some rows of all items add to the gradients: of weights, their product with every tap;
    of the bias, which stands behind the last tap as if all that it reads were 1, their sum."""
    first = tl.program_id(0) * each
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    tap = tl.arange(0, WIDTH)
    real = channel < size
    total = tl.zeros([WIDTH, CHANNELS], tl.float32)
    for row in range(first, tl.minimum(first + each, rows)):
        there = row % time + tap - TAPS // 2
        inside = ((there >= 0) & (there < time) & (tap < TAPS))[:, None] & real[None, :]
        near = row + tap - TAPS // 2
        part = tl.load(x + near[:, None] * size + channel[None, :], mask=inside, other=0.0)
        part = tl.where((tap == TAPS)[:, None], 1.0, part.to(tl.float32))
        given = tl.load(grad + row * size + channel, mask=real, other=0.0)
        total += part * given.to(tl.float32)[None, :]
    place = (tl.program_id(0) * (TAPS + 1) + tap[:, None]) * size + channel[None, :]
    tl.store(out + place, total, mask=(tap <= TAPS)[:, None] & real[None, :])


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x [B, T, D], weight [D, 1, K], bias [D] -> [B, T, D]; all contiguous"""
    batch, time, size = x.shape
    taps, out = weight.flatten(1).t().contiguous(), torch.empty_like(x)  # [K, D]: read in rows
    grid = (batch * triton.cdiv(time, ROWS), triton.cdiv(size, CHANNELS))
    sizes = {"TAPS": len(taps), "BIASED": bias is not None, "ROWS": ROWS}
    given = taps if bias is None else bias
    _convolve[grid](x, taps, given, out, time, size, **sizes, CHANNELS=CHANNELS)
    return out


def weight_gradients(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """grad and x [B, T, D] -> the gradients on weight [D, 1, K] and bias [D]"""
    batch, time, size = x.shape
    rows, taps = batch * time, weight.shape[2]
    each = triton.cdiv(rows, PARTS)
    parts = triton.cdiv(rows, each)
    out = torch.empty(parts, taps + 1, size, dtype=torch.float32, device=x.device)
    sizes = {"TAPS": taps, "WIDTH": triton.next_power_of_2(taps + 1), "CHANNELS": CHANNELS}
    _weigh[(parts, triton.cdiv(size, CHANNELS))](grad, x, out, rows, time, size, each, **sizes)
    total = out.sum(0).to(weight.dtype)
    return total[:-1].t().contiguous().view(weight.shape), total[-1].clone()
