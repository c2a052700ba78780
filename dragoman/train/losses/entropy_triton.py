"""Cross entropy of tokens on CUDA, in one pass over the logits and one for their gradients.

PyTorch's needs the logits in single precision, their log-softmax, and all of it again for the
plain likelihood beside the smoothed one. Here each row is read once, in the precision it has, for
its logsumexp, its sum, its label and its highest unit.
"""

# ruff: noqa: ANN001  (a kernel's arguments are pointers and numbers)

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LOW = tl.constexpr(-1e30)


@triton.jit
def _rows(logits, labels, sums, plain, smooth, right, units, pad, BLOCK: tl.constexpr):
    """Of a row: logsumexp, -log p(label), mean of -log p over all units, is the label highest."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    if label != pad:
        logits += row * units
        column = tl.arange(0, BLOCK)
        highest = tl.full([BLOCK], LOW, tl.float32)
        total = tl.zeros([BLOCK], tl.float32)
        added = tl.zeros([BLOCK], tl.float32)
        for first in range(0, units, BLOCK):
            place = first + column
            x = tl.load(logits + place, mask=place < units, other=LOW).to(tl.float32)
            higher = tl.maximum(highest, x)
            total = total * tl.exp(highest - higher) + tl.exp(x - higher)
            highest = higher
            added += tl.where(place < units, x, 0.0)
        top = tl.max(highest, 0)
        whole = top + tl.log(tl.sum(total * tl.exp(highest - top), 0))
        said = tl.load(logits + label).to(tl.float32)
        tl.store(sums + row, whole)
        tl.store(plain + row, whole - said)
        tl.store(smooth + row, whole - tl.sum(added, 0) / units)
        tl.store(right + row, (said >= top).to(tl.float32))
    else:
        tl.store(sums + row, 0.0)
        tl.store(plain + row, 0.0)
        tl.store(smooth + row, 0.0)
        tl.store(right + row, 0.0)


@triton.jit
def _gradient(logits, labels, sums, given, out, units, pad, smoothing, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    scale = tl.load(given)
    whole = tl.load(sums + row)
    logits += row * units
    out += row * units
    column = tl.arange(0, BLOCK)
    for first in range(0, units, BLOCK):
        place = first + column
        x = tl.load(logits + place, mask=place < units, other=LOW).to(tl.float32)
        wanted = tl.where(place == label, 1.0 - smoothing, 0.0) + smoothing / units
        change = tl.where(label != pad, tl.exp(x - whole) - wanted, 0.0)
        tl.store(out + place, scale * change, mask=place < units)


class _Entropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels, smoothing, pad):
        logits, labels = logits.contiguous(), labels.contiguous()
        units = logits.shape[-1]
        rows = labels.numel()
        sums, plain, smooth, right = logits.new_empty((4, rows), dtype=torch.float32)
        block = min(2048, triton.next_power_of_2(units))
        _rows[(rows,)](logits, labels, sums, plain, smooth, right, units, pad, BLOCK=block)
        ctx.save_for_backward(logits, labels, sums)
        ctx.settings = units, pad, smoothing, block
        nll, right = plain.sum(), right.sum()
        ctx.mark_non_differentiable(nll, right)
        return (1 - smoothing) * plain.sum() + smoothing * smooth.sum(), nll, right

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, given, _nll, _right):
        logits, labels, sums = ctx.saved_tensors
        units, pad, smoothing, block = ctx.settings
        out = torch.empty_like(logits)
        _gradient[(labels.numel(),)](
            logits, labels, sums, given, out, units, pad, smoothing, BLOCK=block
        )
        return out, None, None, None


def entropy(
    logits: Tensor, labels: Tensor, smoothing: float, pad: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over tokens: smoothed cross entropy, plain one, labels that are the highest unit.

    logits [B, U, V], labels [B, U]. Only the first has a gradient. A label as high as another unit
    counts as right.
    """
    return _Entropy.apply(logits, labels, smoothing, pad)
