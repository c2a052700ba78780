"""The operations of ONNX that are layers of a net: norms, convolutions, spectra, an LSTM, in torch.

Quantised ones work in floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.voices.gpu.shapes import TYPES, together

TINY = 1e-12
FINE = 2.0**12  # steps that a one is cut into where whole numbers are expected


def layer_norm(
    x: Tensor, weight: Tensor, bias: Tensor, axis: int = -1, epsilon: float = 1e-5
) -> Tensor:
    return F.layer_norm(x, x.shape[axis:], weight, bias, epsilon)


def skip_layer_norm(
    x: Tensor, skip: Tensor, weight: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    return F.layer_norm(x + skip, x.shape[-1:], weight, bias, epsilon)


def hardly_rounded(x: Tensor) -> tuple[Tensor, ...]:
    """What flows stays floats; behind it, biases are rounded to such steps."""
    return (x * FINE,)


def whole(x: Tensor, zero: Tensor | None) -> Tensor:
    """Quantised numbers as floats. What flows was not quantised and has no zero."""
    if x.is_floating_point():
        return x
    return x.float() if zero is None else x.float() - zero.float().to(x.device)


def dequantise(x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    return whole(x, zero) * scale


def matmul_integer(
    a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    return torch.matmul(*together(whole(a, a_zero), whole(b, b_zero)))


def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    pads: Sequence[int] = (0, 0),
    strides: Sequence[int] = (1,),
    dilations: Sequence[int] = (1,),
    group: int = 1,
) -> Tensor:
    before, after = pads
    if before != after:
        x, before = F.pad(x, (before, after)), 0
    return F.conv1d(x, weight, bias, strides[0], before, dilations[0], group)


def conv_integer(
    x: Tensor,
    weight: Tensor,
    x_zero: Tensor | None = None,
    weight_zero: Tensor | None = None,
    **settings: Any,
) -> Tensor:
    weight = weight.to(x.device)
    return conv(whole(x, x_zero), whole(weight, weight_zero), **settings)


def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    pads: Sequence[int] = (0, 0),
    strides: Sequence[int] = (1,),
    dilations: Sequence[int] = (1,),
    group: int = 1,
    output_padding: Sequence[int] = (0,),
) -> Tensor:
    if group > 1 and group == x.shape[1] and weight.shape[1] == 1:
        # As a convolution of what lies apart: torch would go through channel by channel.
        stride, edge = strides[0], weight.shape[2] - 1 - pads[0]
        apart = F.pad(x.unsqueeze(-1), (0, stride - 1)).flatten(2)
        apart = F.pad(apart, (edge, edge + output_padding[0] - (stride - 1)))
        return F.conv1d(apart, weight.flip(2), bias, groups=group)
    return F.conv_transpose1d(
        x, weight, bias, strides[0], pads[0], output_padding[0], group, dilations[0]
    )


def resize(x: Tensor, roi: Tensor | None, scales: Tensor, mode: str, **_: Any) -> Tensor:
    """Along the last axis; nearest goes by the floor, linear from the middle of a sample."""
    factor = float(scales.reshape(-1)[-1])
    if mode == "nearest":
        return F.interpolate(x, scale_factor=factor, mode="nearest")
    return F.interpolate(
        x, scale_factor=factor, mode="linear", align_corners=False, recompute_scale_factor=False
    )


def stft(
    signal: Tensor, step: Tensor, window: Tensor, length: Tensor | None = None, onesided: int = 1
) -> Tensor:
    size = int(length) if length is not None else window.shape[0]
    spectrum = torch.stft(
        signal.reshape(signal.shape[0], -1),
        size,
        int(step),
        window=window.to(signal.device),
        center=False,
        onesided=bool(onesided),
        return_complex=True,
    )
    # The angle of an exact nothing, as some nets work it out, would be no number.
    return torch.view_as_real(spectrum + TINY).transpose(1, 2)


def fused_matmul(
    a: Tensor, b: Tensor, transA: int = 0, transB: int = 0, alpha: float = 1.0, **_: Any
) -> Tensor:
    a = a.transpose(-1, -2) if transA else a
    b = b.transpose(-1, -2) if transB else b
    return alpha * (a @ b)


def random_normal_like(x: Tensor, dtype: int = 1, mean: float = 0.0, scale: float = 1.0) -> Tensor:
    return mean + scale * torch.randn(x.shape, dtype=TYPES[dtype], device=x.device)


class LSTM:
    """Of both directions, with weights that were quantised."""

    def __init__(self, given: Sequence[Any], hidden_size: int, **others: Any) -> None:
        _, w, r, bias, *_, w_scale, w_zero, r_scale, r_zero = given
        inner = self._floats(w, w_scale, w_zero), self._floats(r, r_scale, r_zero)
        self._net = torch.nn.LSTM(
            inner[0].shape[2], hidden_size, bidirectional=True, device=w.device
        )
        for direction, ending in enumerate(("", "_reverse")):
            for kind, weights in zip(("ih", "hh"), inner, strict=True):
                self._set(f"weight_{kind}_l0{ending}", weights[direction])
            both = bias[direction].chunk(2)
            for kind, one in zip(("ih", "hh"), both, strict=True):
                self._set(f"bias_{kind}_l0{ending}", one)
        self._net.flatten_parameters()

    def __call__(self, x: Tensor) -> tuple[Tensor, ...]:
        """[T, B, D] -> [T, directions, B, H]"""
        made, _ = self._net(x)
        return (made.unflatten(-1, (2, -1)).transpose(1, 2),)

    @staticmethod
    def _floats(weights: Tensor, scale: Any, zero: Any) -> Tensor:
        """[directions, input, 4 H] -> [directions, 4 H, input]"""
        scale, zero = (one.reshape(-1, 1, 1).float().to(weights.device) for one in (scale, zero))
        return ((weights.float() - zero) * scale).transpose(1, 2)

    def _set(self, name: str, value: Tensor) -> None:
        """ONNX has the gates in, out, forget, cell; torch has in, forget, cell, out."""
        first, out, forget, cell = value.chunk(4)
        getattr(self._net, name).data.copy_(torch.cat([first, forget, cell, out]))
