"""Whisper's encoder as two ONNX graphs: its convolutions, and its layers.

The layers take states of any positions, in any order, and the keys and values of others: so states
of older sound can be kept while newer ones are made.
"""

from __future__ import annotations

import numpy as np

from dragoman.models.whisper.graph import CONTRIB, Builder
from dragoman.models.whisper.weights import Weights

CONVOLUTIONS = {"conv1": 1, "conv2": 2}  # and by how many frames each moves on


def embedding_graph(weights: Weights) -> bytes:
    """From mel frames `[1, bands, 2 n]` to embedded states `[1, n, width]`, without positions."""
    b = Builder(weights)
    x = "mel"
    for name, stride in CONVOLUTIONS.items():
        parts = (weights.array(f"encoder/{name}/{part}") for part in ("weight", "bias"))
        x = b.node("Conv", x, *map(b.constant, parts), pads=[1, 1], strides=[stride])
        x = b.node("Gelu", x, domain=CONTRIB)
    return b.model({"mel": np.float32}, [b.node("Transpose", x, perm=[0, 2, 1], name="embedded")])


def encoder_graph(weights: Weights, *, exact: bool) -> bytes:
    """From embedded states `x`, `[1, n, width]`, and the keys and values of others, `keys_0` ...,
    `[1, heads, others, head width]`, to `states` and the keys and values of `x`, `new_keys_0` ...

    `weight` is added to what the others and `x` score, `[1, 1, 1, others + n]`.
    `exact`: in 32-bit floats; else in 8 bits.
    """
    b = Builder(weights, exact=exact)
    kinds: dict[str, type] = {"x": np.float32, "weight": np.float32}
    x, made = "x", []
    bias = b.node("Expand", "weight", _a_row_each(b, "x"))
    for layer in range(weights.layers("encoder")):
        name = f"encoder/layer_{layer}/self_attention"
        both = b.linear(b.norm(x, f"{name}/layer_norm"), f"{name}/linear_0")
        query, keys, values = b.split(both, *[b.shape.width] * 3)
        new = [b.heads(keys, name=f"new_keys_{layer}"), b.heads(values, name=f"new_values_{layer}")]
        known = [f"keys_{layer}", f"values_{layer}"]
        keys, values = (
            b.node("Concat", old, one, axis=2) for old, one in zip(known, new, strict=True)
        )
        seen = b.node(
            "MultiHeadAttention",
            *(query, keys, values, "", "", bias),
            domain=CONTRIB,
            num_heads=b.shape.heads,
        )
        x = b.node("Add", x, b.linear(seen, f"{name}/linear_1"))
        x = b.node("Add", x, b.feed_forward(x, f"encoder/layer_{layer}/ffn"))
        kinds |= dict.fromkeys(known, np.float32)
        made += new
    states = b.node("Identity", b.norm(x, "encoder/layer_norm"), name="states")
    return b.model(kinds, [states, *made])


def _a_row_each(b: Builder, x: str) -> str:
    """The shape `[1, 1, n, 1]`: a row for each of the states `[1, n, width]`."""
    one = b.number([1])
    return b.node("Concat", one, one, b.node("Shape", x, start=1, end=2), one, axis=0)
