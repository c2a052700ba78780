"""The weights of an exported text net under the names of CTranslate2, so that the pieces in
`models/gpu/` can run them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.models.exported.config import ExportedNet
from dragoman.models.exported.weights import ExportedWeights
from dragoman.models.whisper.weights import Weights

POSITIONS = 4096  # more units than any sentence has
RELU = 0  # by CTranslate2's numbers
# By the names of CTranslate2: our linear layers and our norms, in a layer of the encoder or not.
ENCODER = {
    "self_attention/linear_0": "attention.qkv",
    "self_attention/linear_1": "attention.out",
    "ffn/linear_0": "feed_forward.wide",
    "ffn/linear_1": "feed_forward.narrow",
}
DECODER = {**ENCODER, "attention/linear_0": "cross.query", "attention/linear_2": "cross.out"}
MEMORY = {"attention/linear_1": "cross.key_value"}  # computed where the encoder ends
NORMS = {"self_attention": "attention_norm", "attention": "cross_norm", "ffn": "feed_forward_norm"}

Arrays = dict[str, NDArray[Any]]


def text_weights(folder: Path, config: ExportedNet) -> Weights:
    """Of a net that has its norms before its layers."""
    encoder = ExportedWeights(folder / "encoder.onnx")
    decoder = ExportedWeights(folder / "decoder.onnx")
    arrays: Arrays = {}
    for side, file, source in (("encoder", encoder, "source"), ("decoder", decoder, "tokens")):
        table = file.table(source)
        width = table.shape[1]
        arrays[f"{side}/embeddings/weight"] = table * np.float32(width**0.5)
        arrays[f"{side}/position_encodings/encodings"] = sinusoids(POSITIONS, width)
        arrays[f"{side}/num_heads"] = np.array(config.settings[f"{side}_heads"], np.int16)
        arrays[f"{side}/activation"] = np.array(RELU, np.int8)
    for number in range(config.settings["encoder_layers"]):
        root, to = f"net.layers.{number}", f"encoder/layer_{number}"
        _put_linears(arrays, encoder, ENCODER, root, to)
        _put_norms(arrays, encoder, ("self_attention", "ffn"), root, to)
    for number in range(config.settings["decoder_layers"]):
        root, to = f"net.decoder.layers.{number}", f"decoder/layer_{number}"
        _put_linears(arrays, decoder, DECODER, root, to)
        _put_linears(arrays, encoder, MEMORY, root, to)
        _put_norms(arrays, decoder, NORMS, root, to)
    _put_norm(arrays, encoder, "net.norm", "encoder")
    _put_norm(arrays, decoder, "net.decoder.norm", "decoder")
    arrays["decoder/projection/weight"] = decoder.last()
    return Weights(folder / "decoder.onnx", arrays)


def sinusoids(positions: int, width: int) -> NDArray[np.float32]:
    """What is added to units by their positions (`train/nets/layers.py`)."""
    pairs = np.arange(width // 2, dtype=np.float32)
    frequencies = np.exp(pairs * np.float32(-np.log(10000.0) / max(1, width // 2 - 1)))
    angles = np.arange(positions, dtype=np.float32)[:, None] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def _put_linears(
    arrays: Arrays, file: ExportedWeights, names: dict[str, str], root: str, to: str
) -> None:
    for name, module in names.items():
        arrays[f"{to}/{name}/weight"] = file.matrix(f"{root}.{module}")
        arrays[f"{to}/{name}/bias"] = file.array(f"{root}.{module}.bias")


def _put_norms(
    arrays: Arrays, file: ExportedWeights, parts: Iterable[str], root: str, to: str
) -> None:
    for part in parts:
        _put_norm(arrays, file, f"{root}.{NORMS[part]}", f"{to}/{part}")


def _put_norm(arrays: Arrays, file: ExportedWeights, module: str, to: str) -> None:
    arrays[f"{to}/layer_norm/gamma"] = file.array(f"{module}.weight")
    arrays[f"{to}/layer_norm/beta"] = file.array(f"{module}.bias")
