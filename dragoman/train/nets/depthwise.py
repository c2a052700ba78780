"""A convolution of every channel by itself, over time: [B, T, D] -> [B, T, D].

PyTorch wants time last and has slow gradients for such kernels. On CUDA the states stay as they
lie; each tile of them is read once from memory and 31 times from the cache.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.train.trials import passed


def depthwise(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x [B, T, D], weight [D, 1, K] of odd K, bias [D]; as long as x, zeros before and after."""
    if x.is_cuda and _works():
        return torch.ops.dragoman.depthwise(x, weight, bias)
    return plain(x, weight, bias)


def plain(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    side = weight.shape[2] // 2
    x = F.pad(x, (0, 0, side, side)).transpose(1, 2)
    return F.conv1d(x, weight, bias, groups=len(weight)).transpose(1, 2)


@torch.library.custom_op("dragoman::depthwise", mutates_args=())
def _forward(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    from dragoman.train.nets.depthwise_triton import convolve

    return convolve(x.contiguous(), weight, bias)


@torch.library.custom_op("dragoman::depthwise_gradients", mutates_args=())
def _gradients(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    from dragoman.train.nets.depthwise_triton import convolve, weight_gradients

    grad = grad.contiguous()
    return convolve(grad, weight.flip(2), None), *weight_gradients(grad, x.contiguous(), weight)


@_forward.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


@_gradients.register_fake
def _(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    to_x = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return to_x, torch.empty_like(weight), weight.new_empty(len(weight))


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x, weight = ctx.saved_tensors
    return torch.ops.dragoman.depthwise_gradients(grad.to(x.dtype), x, weight)


_forward.register_autograd(_backward, setup_context=_keep)


@cache
@torch.compiler.disable
def _works() -> bool:
    """Whether the kernels show on a small case that they work here."""
    return passed(lambda: trial(torch.device("cuda")))


@torch.inference_mode(False)
@torch.enable_grad()
def trial(
    device: torch.device, batch: int = 2, time: int = 19, size: int = 24, taps: int = 5
) -> None:
    """A small case by kernels and without."""
    shapes = ((batch, time, size), (size, 1, taps), (size,))
    with torch.autocast(device.type, enabled=False):
        inputs = [
            torch.linspace(-9, 9, torch.Size(shape).numel(), device=device).sin().view(shape)
            for shape in shapes
        ]
        inputs = [one.requires_grad_() for one in inputs]
        found = torch.ops.dragoman.depthwise(*inputs)
        wanted = plain(*(one.double() for one in inputs)).float()
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-3)
        given = torch.linspace(-5, 5, found.numel(), device=device).cos().view(found.shape)
        gradients = (torch.autograd.grad(y, inputs, given) for y in (found, wanted))
        for ours, theirs in zip(*gradients, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-3)
