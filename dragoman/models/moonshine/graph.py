"""Moonshine's encoder as two ONNX graphs, made from the weights in memory.

The stem makes frames of sound: three convolutions, and behind the first a norm over all that was
heard. The layers make states of frames. They look at all frames of the window, of which the older
ones are only kept keys and values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.models.whisper.graph import CONTRIB, GELU_LEAST, Angles, Builder
from dragoman.models.whisper.weights import Weights

EPSILON = 1e-5
TO_THE_END = np.iinfo(np.int64).max


def stem_graph(weights: Weights) -> bytes:
    """From `samples` `[batch, n]` to `frames` `[batch, frames, width]`.

    `mean` and `square` `[batch, 1, 1]` are those of everything before, `share` is the part that the
    new sound has in everything, and `skip` how many frames of the first convolution were counted
    before. The new `mean` and `square` come out with the frames.
    """
    b = Builder(weights)
    x = b.node("Unsqueeze", "samples", b.number([1]))
    x = b.node("Tanh", _convolved(b, x, 1, stride=64))
    ends = b.number([TO_THE_END])
    new = b.node("Slice", x, "skip", ends, b.number([2]))
    mean = _gone_on(b, "mean", new)
    square = _gone_on(b, "square", b.node("Mul", new, new))
    variance = b.node("Sub", square, b.node("Mul", mean, mean))
    spread = b.node("Sqrt", b.node("Add", variance, b.number(EPSILON)))
    x = b.node("Div", b.node("Sub", x, mean), spread)
    x = b.node("Mul", x, b.constant(weights.array("encoder/group_norm/gamma")))
    x = b.node("Add", x, b.constant(weights.array("encoder/group_norm/beta")))
    x = b.node("Gelu", _convolved(b, x, 2, stride=3), domain=CONTRIB)
    x = b.node("Gelu", _convolved(b, x, 3, stride=2), domain=CONTRIB)
    b.node("Transpose", x, perm=[0, 2, 1], name="frames")
    inputs = dict.fromkeys(("samples", "mean", "square", "share"), np.float32)
    return b.model({**inputs, "skip": np.int64}, ["frames", mean, square])


def past_names(weights: Weights) -> list[str]:
    """The inputs of `layers_graph` that are kept of earlier frames."""
    layers = range(weights.layers("encoder"))
    return [f"{kind}_{layer}" for layer in layers for kind in ("keys", "values")]


def layers_graph(weights: Weights, *, exact: bool, more: Sequence[str] = ()) -> bytes:
    """From `x` `[batch, n, width]` to `states`, and every layer's keys and values of them.

    `cosine` and `sine` `[batch, n, half]` are by how much each place turns; `keys_0`, `values_0`
    and so on are kept of earlier frames; `mask` is added to how much a frame looks at each of the
    earlier ones and of the new ones. `exact`: in 32-bit floats; else in 8 bits. `more`: norms that
    hand out what they make, too.
    """
    b = Builder(weights, exact=exact)
    names = ["x", "cosine", "sine", "mask", *past_names(weights)]
    angles = b.angles("cosine", "sine")
    x, made = "x", []
    for layer in range(weights.layers("encoder")):
        seen, keys, values = _look_around(b, x, layer, angles)
        x = b.node("Add", x, seen)
        x = b.node("Add", x, _think(b, x, f"encoder/layer_{layer}/ffn"))
        made += [keys, values]
    states = b.node("Identity", b.norm(x, "encoder/layer_norm"), name="states")
    return b.model(dict.fromkeys(names, np.float32), [states, *made, *more])


def _convolved(b: Builder, x: str, number: int, *, stride: int) -> str:
    name = f"encoder/conv{number}"
    parts = [f"{name}/weight", f"{name}/bias"]
    constants = [b.constant(b.weights.array(part)) for part in parts if part in b.weights]
    return b.node("Conv", x, *constants, strides=[stride])


def _gone_on(b: Builder, before: str, new: str) -> str:
    """A mean over everything, from the one before and that over something new."""
    now = b.node("ReduceMean", new, b.number([1, 2]), keepdims=1)
    change = b.node("Mul", b.node("Sub", now, before), "share")
    return b.node("Add", before, change, name=f"new_{before}")


def _look_around(b: Builder, x: str, layer: int, angles: Angles) -> tuple[str, str, str]:
    """Self-attention over kept and new frames; the keys and values of the new ones."""
    name = f"encoder/layer_{layer}/self_attention"
    made = b.linear(b.norm(x, f"{name}/layer_norm"), f"{name}/linear_0")
    query, keys, values = (b.heads(part) for part in b.split(made, *[b.shape.width] * 3))
    query, keys = b.turned(query, angles), b.turned(keys, angles)
    keys = b.node("Identity", keys, name=f"new_keys_{layer}")
    values = b.node("Identity", values, name=f"new_values_{layer}")
    all_keys = b.node("Concat", f"keys_{layer}", keys, axis=2)
    all_values = b.node("Concat", f"values_{layer}", values, axis=2)
    seen, _ = b.attend(query, all_keys, all_values, "mask")
    return b.linear(seen, f"{name}/linear_1"), keys, values


def _think(b: Builder, x: str, name: str) -> str:
    inner = b.linear(b.norm(x, f"{name}/layer_norm"), f"{name}/linear_0")
    return b.linear(b.node("Gelu", inner, domain=CONTRIB), f"{name}/linear_1", least=GELU_LEAST)
