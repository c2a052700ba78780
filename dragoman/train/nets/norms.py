"""Batch normalisation that does not count padding, and that is one over all processes."""

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce

MOMENTUM, EPSILON = 0.1, 1e-5  # as nn.BatchNorm has them


class MaskedBatchNorm(nn.Module):
    """nn.BatchNorm, but the statistics are those of the valid frames only.

    With several processes the sums are added up over all of them (as in SyncBatchNorm), so the
    gradients of two processes are those of one with both their batches.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, axis: int = -1):
        super().__init__()
        self.axis = axis
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x with channels on `axis`; mask broadcasts to it, of size 1 on that axis, 0 = padding."""
        shape = [1] * x.ndim
        shape[self.axis] = -1
        if self.training:
            mean, variance = self._statistics(x, mask, shape)
        else:
            mean, variance = self.running_mean, self.running_var
        scale = self.weight * torch.rsqrt(variance + EPSILON)
        shift = self.bias - mean * scale
        return x * scale.view(shape).to(x.dtype) + shift.view(shape).to(x.dtype)

    def _statistics(self, x: Tensor, mask: Tensor, shape: list[int]) -> tuple[Tensor, Tensor]:
        """Mean and variance of every channel, in single precision or better."""
        others = [i for i in range(x.ndim) if i != self.axis % x.ndim]
        precise = torch.promote_types(x.dtype, torch.float32)
        x, mask = x.to(precise), mask.to(precise)
        count = mask.sum() * (x.numel() / (x.shape[self.axis] * mask.numel()))
        sums = _of_all(torch.cat([(x * mask).sum(others), count.view(1)]))
        count = sums[-1].clamp(min=1)
        mean = sums[:-1] / count
        # A second pass loses no digits, and keeps the running mean, which changes, out of it all.
        centred = (x - mean.view(shape)) * mask
        variance = _of_all((centred * centred).sum(others)) / count
        with torch.no_grad():
            unbiased = variance * (count / (count - 1).clamp(min=1))
            self.running_mean.lerp_(mean, MOMENTUM)
            self.running_var.lerp_(unbiased, MOMENTUM)
        return mean, variance


def _of_all(sums: Tensor) -> Tensor:
    """The sums over all processes."""
    return all_reduce(sums) if dist.is_initialized() else sums
