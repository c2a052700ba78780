"""The operations of ONNX that the nets of voices consist of, in torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.voices.gpu.layers import (
    LSTM,
    conv,
    conv_integer,
    conv_transpose,
    dequantise,
    fused_matmul,
    hardly_rounded,
    layer_norm,
    matmul_integer,
    random_normal_like,
    resize,
    skip_layer_norm,
    stft,
)
from dragoman.voices.gpu.shapes import (
    cast,
    concat,
    constant_of_shape,
    expand,
    gather,
    gather_elements,
    gather_nd,
    ints,
    pad,
    range_of,
    reshape,
    scatter_nd,
    shape,
    slice_of,
    split,
    squeeze,
    together,
    unsqueeze,
    where,
)

UNREAD = frozenset(
    ("auto_pad", "batch_dims", "exclusive", "kernel_shape", "noop_with_empty_axes")
    + ("reduction", "reverse", "saturate", "seed", "stash_type")
)
"""Attributes that the nets of voices leave as they usually are, or that the inputs tell, too."""


def _lone(value: Tensor) -> bool:
    """A single number of the CPU, which torch itself takes along to any device."""
    return value.ndim == 0 and value.device.type == "cpu"


def _pairwise(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def operation(a: Tensor, b: Tensor) -> Tensor:
        if a.device != b.device and not _lone(a) and not _lone(b):
            a, b = together(a, b)
        return function(a, b)

    return operation


def _divide(a: Tensor, b: Tensor) -> Tensor:
    if a.is_floating_point():
        return a / b
    return torch.div(a, b, rounding_mode="trunc")


def _reduce(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def operation(
        x: Tensor,
        over: Tensor | None = None,
        axes: Sequence[int] | None = None,
        keepdims: int = 1,
    ) -> Tensor:
        chosen = ints(over) if over is not None else axes
        return function(x, tuple(chosen or range(x.ndim)), keepdim=bool(keepdims))

    return operation


def _clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    return x.clamp(
        None if low is None else low.to(x.device), None if high is None else high.to(x.device)
    )


def _cumsum(x: Tensor, axis: Tensor) -> Tensor:
    return x.cumsum(int(axis))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": _pairwise(torch.add),
    "And": _pairwise(torch.logical_and),
    "Atan": torch.atan,
    "Cast": cast,
    "Ceil": torch.ceil,
    "Clip": _clip,
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "Conv": conv,
    "ConvInteger": conv_integer,
    "ConvTranspose": conv_transpose,
    "Cos": torch.cos,
    "CumSum": _cumsum,
    "DequantizeLinear": dequantise,
    "Div": _pairwise(_divide),
    "DynamicQuantizeLSTM": LSTM,
    "DynamicQuantizeLinear": hardly_rounded,
    "Equal": _pairwise(torch.eq),
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Expand": expand,
    "FastGelu": lambda x, bias=None: F.gelu(x if bias is None else x + bias, approximate="tanh"),
    "Floor": torch.floor,
    "FusedMatMul": fused_matmul,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Greater": _pairwise(torch.gt),
    "GreaterOrEqual": _pairwise(torch.ge),
    "LayerNormalization": layer_norm,
    "LeakyRelu": lambda x, alpha=0.01: F.leaky_relu(x, alpha),
    "Less": _pairwise(torch.lt),
    "LessOrEqual": _pairwise(torch.le),
    "MatMul": lambda a, b: torch.matmul(*together(a, b)),
    "MatMulInteger": matmul_integer,
    "Mul": _pairwise(torch.mul),
    "Neg": torch.neg,
    "NonZero": lambda x: x.nonzero().T,
    "Not": torch.logical_not,
    "Pad": pad,
    "Pow": _pairwise(torch.pow),
    "RandomNormalLike": random_normal_like,
    "Range": range_of,
    "ReduceMax": _reduce(torch.amax),
    "ReduceMean": _reduce(torch.mean),
    "ReduceSum": _reduce(torch.sum),
    "Relu": torch.relu,
    "Reshape": reshape,
    "Resize": resize,
    "Round": torch.round,
    "STFT": stft,
    "ScatterND": scatter_nd,
    "Shape": shape,
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "SkipLayerNormalization": skip_layer_norm,
    "Slice": slice_of,
    "Softmax": lambda x, axis=-1: x.softmax(axis),
    "Softplus": F.softplus,
    "Split": split,
    "Sqrt": torch.sqrt,
    "Squeeze": squeeze,
    "Sub": _pairwise(torch.sub),
    "Tanh": torch.tanh,
    "Transpose": lambda x, perm: x.permute(perm),
    "Unsqueeze": unsqueeze,
    "Where": where,
}
