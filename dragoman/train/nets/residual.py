"""What is between two branches of a layer: dropout, the sum, the next branch's norm.

    x = x + scale * dropout(branch);  n = norm(x)

PyTorch takes five passes over memory for it, the cast to the precision of the next product
included, and nine to go back; on CUDA it is one, and one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.train.nets.dropout import dropout
from dragoman.train.trials import passed


def add_and_norm(
    x: Tensor,
    branch: Tensor,
    norm: nn.LayerNorm,
    scale: float = 1.0,
    drop: float = 0.0,
    *,
    last: bool = False,
) -> tuple[Tensor, Tensor]:
    """x, branch [..., D] -> the sum, and what `norm` makes of it.

    `drop` is the share of the branch that is left out at random. Kernels give the second in the
    branch's precision, in which the next product wants it; after the `last` branch of a layer,
    where it is what others are added to, in that of the sum.
    """
    # A compiler fuses these passes itself, with what comes before and after them.
    if x.is_cuda and not torch.compiler.is_compiling() and _works():
        shape, kind = (1,), torch.int32
        seed = torch.randint(2**31 - 1, shape, device=x.device, dtype=kind) if drop else None
        seed = torch.zeros(shape, device=x.device, dtype=kind) if seed is None else seed
        out, normed, *_ = torch.ops.dragoman.add_and_norm(
            x.float(), branch, norm.weight, norm.bias, seed, scale, drop, norm.eps, last
        )
        return out, normed
    return plain(x, branch, norm, scale, drop)


def plain(
    x: Tensor, branch: Tensor, norm: nn.LayerNorm, scale: float, drop: float
) -> tuple[Tensor, Tensor]:
    added = dropout(branch, drop)
    x = x + (added if scale == 1.0 else scale * added)
    return x, norm(x)


@torch.library.custom_op("dragoman::add_and_norm", mutates_args=())
def _forward(
    x: Tensor,
    branch: Tensor,
    weight: Tensor,
    bias: Tensor,
    seed: Tensor,
    scale: float,
    drop: float,
    eps: float,
    last: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from dragoman.train.nets.residual_triton import add_and_norm

    ready = x.contiguous(), branch.contiguous()
    kind = x.dtype if last else branch.dtype
    return add_and_norm(*ready, (weight, bias), seed, (scale, drop, eps), kind)


@torch.library.custom_op("dragoman::add_and_norm_gradients", mutates_args=())
def _gradients(
    to_out: Tensor,
    to_normed: Tensor,
    out: Tensor,
    weight: Tensor,
    seed: Tensor,
    means: Tensor,
    scales: Tensor,
    scale: float,
    drop: float,
    kind: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    from dragoman.train.nets.residual_triton import gradients

    given = to_out.contiguous(), to_normed.contiguous()
    return gradients(given, (out, weight, seed, means, scales), (scale, drop), kind)


@_forward.register_fake
def _(
    x: Tensor, branch: Tensor, weight: Tensor, bias: Tensor, seed: Tensor,
    scale: float, drop: float, eps: float, last: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    rows = x.new_empty(x.numel() // x.shape[-1], dtype=torch.float32)
    normed = torch.empty_like(x if last else branch)
    return torch.empty_like(x), normed, rows, torch.empty_like(rows)


@_gradients.register_fake
def _(
    to_out: Tensor, to_normed: Tensor, out: Tensor, weight: Tensor, seed: Tensor,
    means: Tensor, scales: Tensor, scale: float, drop: float, kind: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    sums, branch = weight.new_empty(2, *weight.shape), torch.empty_like(out, dtype=kind)
    return torch.empty_like(out), branch, sums


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    _, branch, weight, _, seed, ctx.scale, ctx.drop, _, _ = inputs
    ctx.kind = branch.dtype
    out, _, means, scales = output
    ctx.save_for_backward(out, weight, seed, means, scales)


def _backward(ctx: Any, to_out: Tensor, to_normed: Tensor, *_: Any) -> tuple[Any, ...]:
    to_x, to_branch, sums = torch.ops.dragoman.add_and_norm_gradients(
        to_out, to_normed, *ctx.saved_tensors, ctx.scale, ctx.drop, ctx.kind
    )
    return to_x, to_branch, *sums.unbind(), None, None, None, None, None


_forward.register_autograd(_backward, setup_context=_keep)


@cache
@torch.compiler.disable
def _works() -> bool:
    """Whether the kernels show on a small case that they work here."""
    cuda = torch.device("cuda")
    large = partial(trial, cuda, rows=3000, size=256, kind=torch.bfloat16)
    return passed(lambda: trial(cuda)) and passed(large)


@torch.inference_mode(False)
@torch.enable_grad()
def trial(
    device: torch.device,
    rows: int = 37,
    size: int = 24,
    kind: torch.dtype = torch.float32,
    last: bool = False,
) -> None:
    """A small case by kernels and without; then dropout: how much is kept, the same both ways."""
    atol, rtol = (1e-3, 1e-3) if kind == torch.float32 else (4e-2, 2e-2)
    with torch.autocast(device.type, enabled=False):
        shapes = ((rows, size), (rows, size), (size,), (size,))
        # Neighbours differ: a row of nearly equal numbers has no norm to speak of.
        values = [waves(1.7, shape, device) for shape in shapes]
        x, weight, bias = (values[place].requires_grad_() for place in (0, 2, 3))
        branch = values[1].to(kind).requires_grad_()
        seed = torch.tensor([7], dtype=torch.int32, device=device)
        inputs = x, branch, weight, bias
        found = torch.ops.dragoman.add_and_norm(*inputs, seed, 0.5, 0.0, 1e-5, last)[:2]
        total = x.double() + 0.5 * branch.double()
        norm = F.layer_norm(total, (size,), weight.double(), bias.double(), 1e-5)
        wanted = total.float(), norm.float()
        wave = waves(0.9, total.shape, device)
        given = [wave.to(one.dtype) for one in found]  # both ways the same, rounded or not
        for ours, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(ours.float(), theirs, atol=atol, rtol=rtol)
        ways = (
            torch.autograd.grad(
                y, inputs, [to.to(one.dtype) for to, one in zip(given, y, strict=True)]
            )
            for y in (found, wanted)
        )
        for ours, theirs in zip(*ways, strict=True):
            torch.testing.assert_close(ours.float(), theirs.float(), atol=atol, rtol=rtol)
        ones = torch.ones(rows, size, device=device, requires_grad=True)
        out, *_ = torch.ops.dragoman.add_and_norm(
            torch.zeros_like(ones), ones, weight, bias, seed, 1.0, 0.25, 1e-5, last
        )
        kept = (out > 0).float()
        torch.testing.assert_close(out, kept / 0.75)
        torch.testing.assert_close(kept.mean().item(), 0.75, atol=0.08, rtol=0.0)
        (back,) = torch.autograd.grad(out.sum(), ones)
        torch.testing.assert_close(back, kept / 0.75)


def waves(pace: float, shape: Sequence[int], device: torch.device) -> Tensor:
    numbers = torch.arange(torch.Size(shape).numel(), device=device, dtype=torch.float64)
    return (pace * numbers).sin().float().view(shape)
