"""torch.compile for nets, layer by layer.

A net repeats a few kinds of layers, so each kind is compiled once and serves all its layers: that
takes seconds where a whole net takes minutes. Batches come in few shapes, and code that is made for
one of them is a tenth faster than code for all; where a task makes further shapes of its own, one
code serves all lengths. Only training runs compiled code; validation and search, whose shapes are
all different, do not wait for more of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from dragoman.errors import DragomanError
from dragoman.train.data.fbank import Fbank
from dragoman.train.nets.caat import JoinerLayer
from dragoman.train.nets.conformer import ConformerLayer
from dragoman.train.nets.layers import DecoderLayer, EncoderLayer
from dragoman.train.nets.subsampling import ConvSubsampling

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
Forward = Callable[..., Any]
LAYERS = (Fbank, ConvSubsampling, EncoderLayer, DecoderLayer, ConformerLayer, JoinerLayer)
SHAPES = 64  # that code is made for; what has more runs uncompiled from there on


def compiler(how: str, dynamic: bool = False) -> Callable[[Forward], Forward]:
    """torch.compile in one of its modes, or with one of its backends."""
    if how in MODES:
        return partial(torch.compile, mode=how, dynamic=dynamic)
    backends = torch._dynamo.list_backends(exclude_tags=())
    if how not in backends:
        known = ", ".join((*MODES, *backends))
        raise DragomanError(f"There is no machine.compile '{how}'; there are {known}.")
    return partial(torch.compile, backend=how, dynamic=dynamic)


def compile_layers(net: nn.Module, how: str, dynamic: bool = False) -> None:
    """Let the layers of a net run as compiled code in training; `dynamic`: one for all lengths."""
    compiled = compiler(how, dynamic)
    torch._dynamo.config.recompile_limit = max(SHAPES, torch._dynamo.config.recompile_limit)
    for layer in net.modules():
        if isinstance(layer, LAYERS):
            setattr(layer, "forward", _in_training(layer, compiled(layer.forward)))  # noqa: B010


def _in_training(layer: nn.Module, compiled: Forward) -> Forward:
    plain = layer.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        return (compiled if layer.training else plain)(*args, **kwargs)

    return forward
