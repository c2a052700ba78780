"""The operations of ONNX that the nets of voices consist of, in torch.

Shapes, axes and places are small whole numbers and stay on the CPU, so that reading them never
waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

Values = list[Any]

TINY = 1e-12
_TYPES = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16}


def _ints(value: Tensor) -> list[int]:
    return [int(one) for one in value.reshape(-1).tolist()]


def _together(*values: Tensor) -> list[Tensor]:
    """On one device: numbers that were a shape's join those they are used with."""
    for value in values:
        if value.device.type != "cpu":
            return [other.to(value.device, non_blocking=True) for other in values]
    return list(values)


def _lone(value: Tensor) -> bool:
    """A single number of the CPU, which torch itself takes along to any device."""
    return value.ndim == 0 and value.device.type == "cpu"


def _pairwise(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def operation(a: Tensor, b: Tensor) -> Tensor:
        if a.device != b.device and not _lone(a) and not _lone(b):
            a, b = _together(a, b)
        return function(a, b)

    return operation


def _divide(a: Tensor, b: Tensor) -> Tensor:
    if a.is_floating_point():
        return a / b
    return torch.div(a, b, rounding_mode="trunc")


def _shape(x: Tensor, start: int = 0, end: int | None = None) -> Tensor:
    return torch.tensor(x.shape[start:end], dtype=torch.int64)


def _cast(x: Tensor, to: int, saturate: int = 1) -> Tensor:
    return x.to(_TYPES[to])


def _gather(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    if index.ndim == 0 and index.device.type == "cpu":
        return x.select(axis, int(index))
    index = index.to(x.device)
    index = torch.where(index < 0, index + x.shape[axis], index)
    picked = x.index_select(axis, index.reshape(-1))
    axis %= x.ndim
    return picked.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def _gather_elements(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    index = torch.where(index < 0, index + x.shape[axis], index)
    return x.gather(axis, index)


def _gather_nd(x: Tensor, index: Tensor, batch_dims: int = 0) -> Tensor:
    return x[tuple(index.to(x.device).unbind(-1))]


def _scatter_nd(x: Tensor, index: Tensor, updates: Tensor, reduction: str = "none") -> Tensor:
    x, updates = x.clone(), updates.to(x.device)
    x[tuple(index.to(x.device).unbind(-1))] = updates
    return x


def _reshape(x: Tensor, shape: Tensor, allowzero: int = 0) -> Tensor:
    wanted = _ints(shape)
    if not allowzero:
        wanted = [x.shape[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    return x.reshape(wanted)


def _unsqueeze(x: Tensor, axes: Tensor) -> Tensor:
    whole = x.ndim + axes.numel()
    for axis in sorted(one % whole for one in _ints(axes)):
        x = x.unsqueeze(axis)
    return x


def _squeeze(x: Tensor, axes: Tensor | None = None) -> Tensor:
    return x.squeeze() if axes is None else x.squeeze(tuple(_ints(axes)))


def _expand(x: Tensor, shape: Tensor) -> Tensor:
    return x.broadcast_to(torch.broadcast_shapes(x.shape, _ints(shape)))


def _slice(
    x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None = None, steps: Tensor | None = None
) -> Tensor:
    begins, stops = _ints(starts), _ints(ends)
    places = range(len(begins)) if axes is None else _ints(axes)
    paces = [1] * len(begins) if steps is None else _ints(steps)
    for begin, stop, axis, pace in zip(begins, stops, places, paces, strict=True):
        picked = range(x.shape[axis])[begin:stop:pace]
        if pace > 0:
            part = [slice(None)] * (axis % x.ndim) + [slice(picked.start, picked.stop, pace)]
            x = x[tuple(part)]
        else:
            x = x.index_select(axis, torch.tensor(list(picked), device=x.device))
    return x


def _split(x: Tensor, sizes: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    return x.split(_ints(sizes), dim=axis)


def _concat(*parts: Tensor, axis: int) -> Tensor:
    return torch.cat(_together(*parts), dim=axis)


def _constant_of_shape(shape: Tensor, value: np.ndarray) -> Tensor:
    return torch.full(_ints(shape), value.item(), dtype=torch.from_numpy(value.copy()).dtype)


def _range(start: Tensor, limit: Tensor, step: Tensor) -> Tensor:
    return torch.arange(start.item(), limit.item(), step.item(), dtype=start.dtype)


def _where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    condition, a, b = _together(condition, a, b)
    return torch.where(condition, a, b)


def _reduce(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def operation(
        x: Tensor,
        over: Tensor | None = None,
        axes: Sequence[int] | None = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Tensor:
        chosen = _ints(over) if over is not None else axes
        return function(x, tuple(chosen or range(x.ndim)), keepdim=bool(keepdims))

    return operation


def _clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    return x.clamp(
        None if low is None else low.to(x.device), None if high is None else high.to(x.device)
    )


def _cumsum(x: Tensor, axis: Tensor, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return x.cumsum(int(axis))


def _layer_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Tensor:
    return F.layer_norm(x, x.shape[axis:], weight, bias, epsilon)


def _skip_layer_norm(
    x: Tensor, skip: Tensor, weight: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    return F.layer_norm(x + skip, x.shape[-1:], weight, bias, epsilon)


FINE = 2.0**12  # steps that a one is cut into where whole numbers are expected


def _hardly_rounded(x: Tensor) -> tuple[Tensor, ...]:
    """What flows stays floats; behind it, biases are rounded to such steps."""
    return (x * FINE,)


def whole(x: Tensor, zero: Tensor | None) -> Tensor:
    """Quantised numbers as floats. What flows was not quantised and has no zero."""
    if x.is_floating_point():
        return x
    return x.float() if zero is None else x.float() - zero.float().to(x.device)


def _dequantise(x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    return whole(x, zero) * scale


def _matmul_integer(
    a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    return torch.matmul(*_together(whole(a, a_zero), whole(b, b_zero)))


def _conv_integer(
    x: Tensor,
    weight: Tensor,
    x_zero: Tensor | None = None,
    weight_zero: Tensor | None = None,
    **settings: Any,
) -> Tensor:
    weight = weight.to(x.device)
    return _conv(whole(x, x_zero), whole(weight, weight_zero), **settings)


def _conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    pads: Sequence[int] = (0, 0),
    strides: Sequence[int] = (1,),
    dilations: Sequence[int] = (1,),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    auto_pad: str = "NOTSET",
) -> Tensor:
    before, after = pads
    if before != after:
        x, before = F.pad(x, (before, after)), 0
    return F.conv1d(x, weight, bias, strides[0], before, dilations[0], group)


def _conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    pads: Sequence[int] = (0, 0),
    strides: Sequence[int] = (1,),
    dilations: Sequence[int] = (1,),
    group: int = 1,
    output_padding: Sequence[int] = (0,),
    kernel_shape: Sequence[int] = (),
    auto_pad: str = "NOTSET",
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


def _pad(x: Tensor, pads: Tensor, value: Tensor | None = None, mode: str = "constant") -> Tensor:
    widths = _ints(pads)
    pairs = list(zip(widths[: x.ndim], widths[x.ndim :], strict=True))
    if mode == "constant":
        flat = [width for pair in reversed(pairs) for width in pair]
        return F.pad(x, flat, value=0.0 if value is None else value.item())
    return F.pad(x.reshape(-1, 1, x.shape[-1]), pairs[-1], mode=mode).reshape(*x.shape[:-1], -1)


def _resize(
    x: Tensor,
    roi: Tensor | None,
    scales: Tensor,
    mode: str,
    coordinate_transformation_mode: str,
    **_: Any,
) -> Tensor:
    """Along the last axis; nearest goes by the floor, linear from the middle of a sample."""
    factor = float(scales.reshape(-1)[-1])
    if mode == "nearest":
        return F.interpolate(x, scale_factor=factor, mode="nearest")
    return F.interpolate(
        x, scale_factor=factor, mode="linear", align_corners=False, recompute_scale_factor=False
    )


def _stft(
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


def _fused_matmul(
    a: Tensor, b: Tensor, transA: int = 0, transB: int = 0, **settings: Any
) -> Tensor:
    a = a.transpose(-1, -2) if transA else a
    b = b.transpose(-1, -2) if transB else b
    return settings.get("alpha", 1.0) * (a @ b)


def _random_normal_like(
    x: Tensor, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float = 0.0
) -> Tensor:
    return mean + scale * torch.randn(x.shape, dtype=_TYPES[dtype], device=x.device)


class LSTM:
    """Of both directions, with weights that were quantised."""

    def __init__(self, given: Sequence[Any], hidden_size: int, **settings: Any) -> None:
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


OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": _pairwise(torch.add),
    "And": _pairwise(torch.logical_and),
    "Atan": torch.atan,
    "Cast": _cast,
    "Ceil": torch.ceil,
    "Clip": _clip,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Conv": _conv,
    "ConvInteger": _conv_integer,
    "ConvTranspose": _conv_transpose,
    "Cos": torch.cos,
    "CumSum": _cumsum,
    "DequantizeLinear": _dequantise,
    "Div": _pairwise(_divide),
    "DynamicQuantizeLSTM": LSTM,
    "DynamicQuantizeLinear": _hardly_rounded,
    "Equal": _pairwise(torch.eq),
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Expand": _expand,
    "FastGelu": lambda x, bias=None: F.gelu(x if bias is None else x + bias, approximate="tanh"),
    "Floor": torch.floor,
    "FusedMatMul": _fused_matmul,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Greater": _pairwise(torch.gt),
    "GreaterOrEqual": _pairwise(torch.ge),
    "LayerNormalization": _layer_norm,
    "LeakyRelu": lambda x, alpha=0.01: F.leaky_relu(x, alpha),
    "Less": _pairwise(torch.lt),
    "LessOrEqual": _pairwise(torch.le),
    "MatMul": lambda a, b: torch.matmul(*_together(a, b)),
    "MatMulInteger": _matmul_integer,
    "Mul": _pairwise(torch.mul),
    "Neg": torch.neg,
    "NonZero": lambda x: x.nonzero().T,
    "Not": torch.logical_not,
    "Pad": _pad,
    "Pow": _pairwise(torch.pow),
    "RandomNormalLike": _random_normal_like,
    "Range": _range,
    "ReduceMax": _reduce(torch.amax),
    "ReduceMean": _reduce(torch.mean),
    "ReduceSum": _reduce(torch.sum),
    "Relu": torch.relu,
    "Reshape": _reshape,
    "Resize": _resize,
    "Round": torch.round,
    "STFT": _stft,
    "ScatterND": _scatter_nd,
    "Shape": _shape,
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "SkipLayerNormalization": _skip_layer_norm,
    "Slice": _slice,
    "Softmax": lambda x, axis=-1: x.softmax(axis),
    "Softplus": F.softplus,
    "Split": _split,
    "Sqrt": torch.sqrt,
    "Squeeze": _squeeze,
    "Sub": _pairwise(torch.sub),
    "Tanh": torch.tanh,
    "Transpose": lambda x, perm: x.permute(perm),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
