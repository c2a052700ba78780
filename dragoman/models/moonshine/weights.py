"""Moonshine's weights under the names of CTranslate2, so that Whisper's decoder can run them."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.models.onnx_weights import Matrix, OnnxWeights
from dragoman.models.whisper.weights import Weights

ROOT = "model.decoder"
# By how much each position turns further.
ANGLES = "/model/decoder/rotary_emb/Cast_1_output_0"
ENCODER_ANGLES = "/rotary_emb/Cast_1_output_0"
HEADS = 8  # in Moonshine of every size
POSITIONS = 1024  # more tokens than any window holds
NORMS = {
    "self_attention": "input_layernorm",
    "attention": "post_attention_layernorm",
    "ffn": "final_layernorm",
}

Arrays = dict[str, NDArray[Any]]


def moonshine_weights(encoder: Path, decoder: Path) -> Weights:
    """Encoder and decoder, of .onnx or .ort files."""
    return Weights(encoder, encoder_arrays(encoder) | decoder_arrays(decoder))


def encoder_arrays(path: Path) -> Arrays:
    file = OnnxWeights(path)
    arrays: Arrays = {"encoder/angles": file.array(ENCODER_ANGLES).ravel()}
    for number in (1, 2, 3):
        arrays[f"encoder/conv{number}/weight"] = file.array(f"conv{number}.weight")
        if number > 1:
            arrays[f"encoder/conv{number}/bias"] = file.array(f"conv{number}.bias")
    for part, node in (("gamma", "Mul"), ("beta", "Add")):
        arrays[f"encoder/group_norm/{part}"] = file.operand(f"/groupnorm/{node}")
    arrays["encoder/layer_norm/gamma"] = file.array("layer_norm.weight")
    width = len(arrays["encoder/layer_norm/gamma"])
    order = apart(HEADS, width // HEADS, 2 * len(arrays["encoder/angles"]))
    for number in count():
        root, to = f"layers.{number}", f"encoder/layer_{number}"
        if f"{root}.input_layernorm.weight" not in file:
            break
        _put_attention(arrays, file, f"{root}.self_attn", f"{to}/self_attention", order)
        for name in ("fc1", "fc2"):
            linear = f"{to}/ffn/linear_{int(name[-1]) - 1}"
            _put(arrays, linear, file.matrix(f"{root}.mlp.{name}"))
            arrays[f"{linear}/bias"] = file.array(f"{root}.mlp.{name}.bias")
        for part, norm in (("self_attention", "input"), ("ffn", "post_attention")):
            gamma = file.array(f"{root}.{norm}_layernorm.weight")
            arrays[f"{to}/{part}/layer_norm/gamma"] = gamma
    return arrays


def decoder_arrays(path: Path) -> Arrays:
    file = OnnxWeights(path)
    table = file.table(f"{ROOT}.embed_tokens.weight")
    width = table.steps.shape[1]
    angles = file.array(ANGLES).ravel()
    arrays: Arrays = {"decoder/num_heads": np.array(HEADS, np.int16)}
    _put(arrays, "decoder/projection", table)
    _put(arrays, "decoder/embeddings", Matrix(wider(table.steps, 2 * len(angles)), table.scale))
    arrays["decoder/position_encodings/encodings"] = positions(width, angles)
    arrays["decoder/layer_norm/gamma"] = file.array(f"{ROOT}.norm.weight")
    order = apart(HEADS, width // HEADS, 2 * len(angles))
    for number in count():
        if f"{ROOT}.layers.{number}.input_layernorm.weight" not in file:
            break
        _put_layer(arrays, file, number, order)
    return arrays


def _put_layer(arrays: Arrays, file: OnnxWeights, number: int, order: NDArray[np.int64]) -> None:
    root, to = f"{ROOT}.layers.{number}", f"decoder/layer_{number}"

    def matrices(*names: str) -> Matrix:
        return Matrix.joined([file.matrix(f"{root}.{name}") for name in names])

    _put_attention(arrays, file, f"{root}.self_attn", f"{to}/self_attention", order)
    _put(arrays, f"{to}/attention/linear_0", matrices("encoder_attn.q_proj"))
    memory = matrices("encoder_attn.k_proj", "encoder_attn.v_proj")
    _put(arrays, f"{to}/attention/linear_1", memory)
    _put(arrays, f"{to}/attention/linear_2", matrices("encoder_attn.dense"))
    for name, part in (("linear_0", "mlp.up_proj"), ("linear_1", "mlp.down_proj")):
        _put(arrays, f"{to}/ffn/{name}", matrices(part))
        arrays[f"{to}/ffn/{name}/bias"] = file.array(f"{root}.{part}.bias")
    for part, norm in NORMS.items():
        arrays[f"{to}/{part}/layer_norm/gamma"] = file.array(f"{root}.{norm}.weight")


def _put_attention(
    arrays: Arrays, file: OnnxWeights, root: str, to: str, order: NDArray[np.int64]
) -> None:
    """Self-attention, in which positions turn queries and keys."""
    query, key, value = (file.matrix(f"{root}.{name}_proj") for name in "qkv")
    turning = [Matrix(one.steps[order], one.scale[order]) for one in (query, key)]
    _put(arrays, f"{to}/linear_0", Matrix.joined([*turning, value]))
    _put(arrays, f"{to}/linear_1", file.matrix(f"{root}.dense"))


def _put(arrays: Arrays, name: str, matrix: Matrix) -> None:
    arrays[f"{name}/weight"], arrays[f"{name}/weight_scale"] = matrix.steps, matrix.scale


def positions(width: int, angles: NDArray[np.float32]) -> NDArray[np.float32]:
    """What is added to the rows of embeddings: nothing, and then each position's turn."""
    turns = np.arange(POSITIONS, dtype=np.float32)[:, None] * angles
    nothing = np.zeros((POSITIONS, width), np.float32)
    return np.concatenate([nothing, np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)


def wider(rows: NDArray[Any], more: int) -> NDArray[Any]:
    """Rows of embeddings with room for the turn of a position."""
    return np.pad(rows, ((0, 0), (0, more)))


def apart(heads: int, size: int, turning: int) -> NDArray[np.int64]:
    """The rows of a matrix so that what turns together, which are neighbours in each head, stands
    in two halves. Queries and keys are put in the same order, so their products stay."""
    order = [*range(0, turning, 2), *range(1, turning, 2), *range(turning, size)]
    rows: NDArray[np.int64] = np.arange(heads)[:, None] * size + np.array(order)
    return rows.ravel()
