"""Whisper's decoder as two ONNX graphs, made from the weights in memory; Moonshine's, too.

It reads what was said in one pass, and hands out its attention. Weights are 8-bit, scaled by row
and by column, as in CTranslate2.

Moonshine differs in two things, and its weights say so: positions turn queries and keys instead of
being added, and the feed-forward part has gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.models.whisper.weights import Weights

OPSET, IR = 18, 9
INPUTS_PER_LAYER = ("keys", "values", "memory_keys", "memory_values")
CONTRIB = "com.microsoft"  # where onnxruntime keeps operators of its own
GELU_LEAST = -0.17  # no value of it is below this
BYTES_BELOW = 16  # steps that numbers get below zero which go hardly below it

Angles = tuple[str, str, str]
"""Where in two tables each place is, and the tables, of cosines and of sines."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a decoder."""

    layers: int
    heads: int
    width: int
    words: int
    turning: int  # numbers of each head that positions turn, the first ones
    gated: bool  # whether the feed-forward part has gates

    @classmethod
    def of(cls, weights: Weights) -> Shape:
        """Where positions turn, a row of them follows each embedding: cosines, then sines."""
        words, row = weights.stored("decoder/embeddings/weight").shape
        inner, width = weights.stored("decoder/layer_0/ffn/linear_0/weight").shape
        gated = inner > weights.stored("decoder/layer_0/ffn/linear_1/weight").shape[1]
        heads = int(weights.stored("decoder/num_heads"))
        return cls(weights.layers("decoder"), heads, width, words, row - width, gated)

    @property
    def head_width(self) -> int:
        return self.width // self.heads


class Builder:
    """Collects nodes and constants; every method returns the name of its result."""

    def __init__(self, weights: Weights, *, exact: bool = False) -> None:
        """`exact`: matrices in 32-bit floats; else in 8 bits."""
        self.weights = weights
        self._exact = exact
        self.shape = Shape.of(weights)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._names: dict[Any, str] = {}

    def node(self, kind: str, *inputs: str, domain: str = "", name: str = "", **more: Any) -> str:
        from onnx import helper

        name = name or f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **more))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        from onnx import numpy_helper

        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(value, name))
        return name

    def number(self, value: Any) -> str:
        """A small constant, kept once; whole numbers are indices, others are weights."""
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        key = (array.dtype.str, array.tobytes(), array.shape)
        if key not in self._names:
            self._names[key] = self.constant(array)
        return self._names[key]

    def model(self, inputs: dict[str, type], outputs: Sequence[str]) -> bytes:
        """The finished model, ready to be run."""
        from onnx import helper

        def value(name: str, kind: type) -> Any:
            number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
            return helper.make_tensor_value_info(name, number, None)

        graph = helper.make_graph(
            self._nodes,
            "whisper",
            [value(name, kind) for name, kind in inputs.items()],
            [value(name, np.float32) for name in outputs],
            self._constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=IR)
        serialized: bytes = made.SerializeToString()
        return serialized

    # The pieces of a Transformer.

    def norm(self, x: str, name: str) -> str:
        known = [f"{name}/{part}" for part in ("gamma", "beta")]  # Moonshine has no beta
        scales = [self.constant(self.weights.array(one)) for one in known if one in self.weights]
        return self.node("LayerNormalization", x, *scales, axis=-1, epsilon=1e-5, name=name)

    def linear(self, x: str, name: str, *, least: float | None = None) -> str:
        """x times a matrix, and a bias where there is one; `least`: nothing in x is below it."""
        if self._exact:
            matrix = np.ascontiguousarray(self.weights.array(f"{name}/weight").T)
            y = self.node("MatMul", x, self.constant(matrix))
        else:
            y = self._product(x, f"{name}/weight", least)
        if f"{name}/bias" not in self.weights:
            return y
        return self.node("Add", y, self.constant(self.weights.array(f"{name}/bias")))

    def _product(self, x: str, name: str, least: float | None) -> str:
        """x times an 8-bit matrix: each row of x is brought to unsigned bytes."""
        zero, step = self._row_steps(x, least)
        raised = self.node("QuantizeLinear", self.node("Div", x, step), self.number(1.0), zero)
        weight, scale = (self.constant(part) for part in quantized(self.weights, name))
        factors = (raised, weight, self.number(1.0), scale, zero)
        product = self.node("MatMulIntegerToFloat", *factors, domain=CONTRIB)
        return self.node("Mul", product, step)

    def _row_steps(self, x: str, least: float | None) -> tuple[str, str]:
        """The byte that stands for zero, and what a step is worth in each row of x."""
        zero, smallest = (128, 1e-9) if least is None else (BYTES_BELOW, -least / BYTES_BELOW)
        sizes = self.node("Abs", x) if least is None else x
        largest = self.node("ReduceMax", sizes, self.number([-1]), keepdims=1)
        step = self.node("Mul", largest, self.number(1 / (255 - zero)))
        return self.number(np.uint8(zero)), self.node("Max", step, self.number(smallest))

    def split(self, x: str, *widths: int) -> list[str]:
        """Cut the last axis into parts."""
        axis, step = self.number([-1]), self.number([1])
        return [
            self.node("Slice", x, self.number([begin]), self.number([end]), axis, step)
            for begin, end in pairwise(accumulate(widths, initial=0))
        ]

    def heads(self, x: str, *, name: str = "") -> str:
        """[batch, n, width] to [batch, heads, n, head width]."""
        shape = self.number([0, 0, self.shape.heads, self.shape.head_width])
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3], name=name)

    def angles(self, cosine: str, sine: str) -> Angles:
        """Those of places whose cosines and sines are `[batch, n, half]`."""
        half = self.number([-1, self.shape.turning // 2])
        shape = self.node("Shape", cosine, start=0, end=2)
        count = self.node("ReduceProd", shape, keepdims=0)
        places = self.node("Range", self.number(np.int64(0)), count, self.number(np.int64(1)))
        places = self.node("Reshape", places, shape)
        return places, self.node("Reshape", cosine, half), self.node("Reshape", sine, half)

    def turned(self, x: str, angles: Angles) -> str:
        """Heads `[batch, heads, n, head width]`, turned by their places' angles."""
        heads, turning = self.shape.heads, self.shape.turning
        return self.node(
            *("RotaryEmbedding", x, *angles),
            domain=CONTRIB,
            num_heads=heads,
            rotary_embedding_dim=turning,
        )

    def attend(self, query: str, keys: str, values: str, mask: str) -> tuple[str, str]:
        """What the heads of a query see, joined, and how they spread their attention."""
        size = self.shape.head_width**-0.5
        scores = self.node("FusedMatMul", query, keys, transB=1, alpha=size, domain=CONTRIB)
        spread = self.node("Softmax", self.node("Add", scores, mask), axis=-1)
        seen = self.node("Transpose", self.node("MatMul", spread, values), perm=[0, 2, 1, 3])
        return self.node("Reshape", seen, self.number([0, 0, self.shape.width])), spread

    def feed_forward(self, x: str, name: str) -> str:
        inner = self.linear(self.norm(x, f"{name}/layer_norm"), f"{name}/linear_0")
        if self.shape.gated:
            size = len(self.weights.stored(f"{name}/linear_0/weight")) // 2
            inner, gate = self.split(inner, size, size)
            opened = self.node("Mul", gate, self.node("Sigmoid", gate))
            return self.linear(self.node("Mul", inner, opened), f"{name}/linear_1")
        return self.linear(self.node("Gelu", inner, domain=CONTRIB), f"{name}/linear_1")


def quantized(weights: Weights, name: str) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A matrix [out, in] as bytes [in, out], and what one step of each column is worth."""
    stored = weights.stored(name)
    if stored.dtype == np.int8:
        return np.ascontiguousarray(stored.T), 1.0 / weights.array(f"{name}_scale")
    scale = np.empty(len(stored), np.float32)
    steps = np.empty(stored.shape[::-1], np.int8)
    for begin in range(0, len(stored), 256):  # in parts that fit into the processor's cache
        part = slice(begin, begin + 256)
        numbers = weights.array(name, part)
        scale[part] = np.maximum(np.abs(numbers).max(axis=1) / 127.0, 1e-9)
        numbers /= scale[part, None]
        steps[:, part] = np.rint(numbers, out=numbers).astype(np.int8).T
    return steps, scale


def memory_graph(weights: Weights, *, exact: bool = False) -> bytes:
    """From the encoder's states to every layer's keys and values."""
    b = Builder(weights, exact=exact)
    outputs = []
    for layer in range(b.shape.layers):
        both = b.linear("states", f"decoder/layer_{layer}/attention/linear_1")
        keys, values = b.split(both, b.shape.width, b.shape.width)
        outputs.append(b.heads(keys, name=f"memory_keys_{layer}"))
        outputs.append(b.heads(values, name=f"memory_values_{layer}"))
    return b.model({"states": np.float32}, outputs)


def decoder_graph(
    weights: Weights, alignment: Sequence[tuple[int, int]], *, exact: bool = False
) -> bytes:
    """From embedded tokens, what was computed before and the memory, to the next tokens.

    `x` is `[texts, n, width]`, followed by each position's cosines and sines where positions turn;
    there are as many texts about every sound. `rows` are the
    positions `[texts, rows, 1]` whose next token is wanted. `attention` is the mean over the
    alignment heads `(layer, head)`, `[sounds, texts per sound * n, states]`.

    The log-probabilities of a row are among the tokens that are allowed there: `kinds`, of the
    same `[texts, rows]`, are rows of `allowed`, `[kinds, words]`, which is added to the logits.
    """
    b = Builder(weights, exact=exact)
    kinds: dict[str, type] = {"x": np.float32, "mask": np.float32, "memory_mask": np.float32}
    kinds |= {"rows": np.int64, "allowed": np.float32, "kinds": np.int64}
    x, angles = _positioned(b)
    looks, caches = [], []
    for layer in range(b.shape.layers):
        seen, keys, values = _look_back(b, x, layer, angles)
        x = b.node("Add", x, seen)
        seen, spread = _look_at_sound(b, x, layer)
        x = b.node("Add", x, seen)
        x = b.node("Add", x, b.feed_forward(x, f"decoder/layer_{layer}/ffn"))
        chosen = [head for at, head in alignment if at == layer]
        if chosen:
            picked = b.node("Gather", spread, b.number(chosen), axis=1)
            looks.append(b.node("ReduceSum", picked, b.number([1]), keepdims=0))
        caches += [keys, values]
        kinds |= {f"{kind}_{layer}": np.float32 for kind in INPUTS_PER_LAYER}
    x = b.norm(b.node("GatherND", x, "rows", batch_dims=1), "decoder/layer_norm")
    allowed = b.node("Gather", "allowed", "kinds", axis=0)
    logits = b.node("Add", b.linear(x, "decoder/projection"), allowed)
    log_probs = b.node("LogSoftmax", logits, axis=-1, name="log_probs")
    total = b.node("Sum", *looks)
    attention = b.node("Mul", total, b.number(1.0 / len(alignment)), name="attention")
    return b.model(kinds, [log_probs, attention, *caches])


def _positioned(b: Builder) -> tuple[str, Angles | None]:
    """The tokens, and by how much their positions turn, if they do."""
    half = b.shape.turning // 2
    if not half:
        return "x", None
    x, cosine, sine = b.split("x", b.shape.width, half, half)
    return x, b.angles(cosine, sine)


def _look_back(b: Builder, x: str, layer: int, angles: Angles | None) -> tuple[str, str, str]:
    """Self-attention over the text so far; its keys and values with those of the new tokens."""
    name = f"decoder/layer_{layer}/self_attention"
    made = b.linear(b.norm(x, f"{name}/layer_norm"), f"{name}/linear_0")
    query, keys, values = b.split(made, *[b.shape.width] * 3)
    query, keys = b.heads(query), b.heads(keys)
    if angles is not None:
        query, keys = b.turned(query, angles), b.turned(keys, angles)
    keys = b.node("Concat", f"keys_{layer}", keys, axis=2, name=f"new_keys_{layer}")
    values = b.node(
        "Concat", f"values_{layer}", b.heads(values), axis=2, name=f"new_values_{layer}"
    )
    seen, _ = b.attend(query, keys, values, "mask")
    return b.linear(seen, f"{name}/linear_1"), keys, values


def _look_at_sound(b: Builder, x: str, layer: int) -> tuple[str, str]:
    """Attention over the sound. All texts about a sound look together: it is kept once."""
    name = f"decoder/layer_{layer}/attention"
    query = b.linear(b.norm(x, f"{name}/layer_norm"), f"{name}/linear_0")
    sounds = b.node("Shape", f"memory_keys_{layer}", start=0, end=1)
    together = b.node("Concat", sounds, b.number([-1, b.shape.width]), axis=0)
    query = b.node("Reshape", query, together)
    keys, values = f"memory_keys_{layer}", f"memory_values_{layer}"
    seen, spread = b.attend(b.heads(query), keys, values, "memory_mask")
    seen = b.node("Reshape", seen, b.node("Shape", x))
    return b.linear(seen, f"{name}/linear_2"), spread
