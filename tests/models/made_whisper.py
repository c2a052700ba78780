"""A small Whisper with random weights, written by CTranslate2's own specs: a whole folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

WIDTH, HEADS, LAYERS, BANDS, STATES = 32, 2, 2, 80, 1500
LANGUAGES = ("en", "de", "ja")
TEXT = 40
NAMES = (
    *(f"Ġw{index}" for index in range(TEXT)),
    *("<|endoftext|>", "<|startoftranscript|>", *(f"<|{code}|>" for code in LANGUAGES)),
    *("<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>"),
    *("<|notimestamps|>", *(f"<|{index * 0.02:.2f}|>" for index in range(5))),
)
IDS = {name: index for index, name in enumerate(NAMES)}


def make(
    folder: Path,
    quantization: str | None = None,
    *,
    seed: int = 0,
    decoder_layers: int = LAYERS,
    names: Sequence[str] = NAMES,
) -> Path:
    """Write a model folder as CTranslate2's converter writes them."""
    from ctranslate2.specs import WhisperSpec

    random = np.random.default_rng(seed)

    def normal(*shape: int, size: float = 1.0) -> np.ndarray:
        return (size * random.standard_normal(shape)).astype(np.float32)

    spec = WhisperSpec(LAYERS, HEADS, decoder_layers, HEADS)
    spec.encoder.conv1.weight, spec.encoder.conv1.bias = normal(WIDTH, BANDS, 3), normal(WIDTH)
    spec.encoder.conv2.weight, spec.encoder.conv2.bias = normal(WIDTH, WIDTH, 3), normal(WIDTH)
    spec.encoder.position_encodings.encodings = normal(STATES, WIDTH)
    spec.decoder.position_encodings.encodings = normal(448, WIDTH, size=2.0)
    spec.decoder.embeddings.weight = normal(len(names), WIDTH, size=2.0)
    spec.decoder.projection.weight = spec.decoder.embeddings.weight

    def norm(layer) -> None:
        layer.gamma, layer.beta = 1 + normal(WIDTH, size=0.1), normal(WIDTH, size=0.1)

    def linear(layer, rows: int, columns: int) -> None:
        layer.weight = normal(rows, columns, size=2.0 * columns**-0.5)
        layer.bias = normal(rows, size=0.1)

    def block(layer) -> None:
        norm(layer.self_attention.layer_norm)
        linear(layer.self_attention.linear[0], 3 * WIDTH, WIDTH)
        linear(layer.self_attention.linear[1], WIDTH, WIDTH)
        norm(layer.ffn.layer_norm)
        linear(layer.ffn.linear_0, 4 * WIDTH, WIDTH)
        linear(layer.ffn.linear_1, WIDTH, 4 * WIDTH)

    for layer in spec.encoder.layer:
        block(layer)
    for layer in spec.decoder.layer:
        block(layer)
        norm(layer.attention.layer_norm)
        linear(layer.attention.linear[0], WIDTH, WIDTH)
        linear(layer.attention.linear[1], 2 * WIDTH, WIDTH)
        linear(layer.attention.linear[2], WIDTH, WIDTH)
    norm(spec.encoder.layer_norm)
    norm(spec.decoder.layer_norm)
    spec.register_vocabulary(list(names))
    spec.config.suppress_ids = [3]
    spec.config.suppress_ids_begin = [5, IDS["<|endoftext|>"]]
    spec.config.lang_ids = [IDS[f"<|{code}|>"] for code in LANGUAGES]
    spec.config.alignment_heads = [(0, 1), (decoder_layers - 1, 0)]
    spec.validate()
    spec.optimize(quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    return folder
