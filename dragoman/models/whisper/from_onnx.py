"""A Whisper in ONNX, as it comes from the usual exporter, as a folder in CTranslate2's format.

So there is one way to run Whisper, whatever it came in. 8-bit weights stay what they are: only
rows that do not fit into a byte once their zero point is taken off are rounded again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.errors import DragomanError
from dragoman.models.kind import FILES, first_file, read_settings
from dragoman.models.onnx_weights import Matrix, OnnxWeights
from dragoman.models.options import Options
from dragoman.models.whisper.alignment import Head, alignment_heads
from dragoman.models.whisper.model import WhisperModel

VERSION = 1  # of the folders that are made
PLACES_PER_SECOND = 50  # in Whisper's tokens for moments


@dataclass(frozen=True, slots=True)
class _Config:
    """What `config.json` says of the net's shape."""

    encoder_layers: int
    encoder_attention_heads: int
    decoder_layers: int
    decoder_attention_heads: int
    vocab_size: int


@dataclass(frozen=True, slots=True)
class _Generation:
    """What `generation_config.json` says of what may be made; null: nothing."""

    suppress_tokens: list[int] | None = None
    begin_suppress_tokens: list[int] | None = None
    lang_to_id: dict[str, int] | None = None
    alignment_heads: list[Head] | None = None


@dataclass(frozen=True, slots=True)
class _Added:
    content: str
    id: int


@dataclass(frozen=True, slots=True)
class _Units:
    vocab: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Tokenizer:
    """What `tokenizer.json` says of the tokens."""

    model: _Units
    added_tokens: list[_Added]


def load(folder: Path, name: str, options: Options) -> WhisperModel:
    """The model of an ONNX folder."""
    return WhisperModel.load(in_ctranslate2(folder), name, options)


def in_ctranslate2(folder: Path) -> Path:
    """The folder that was made of an ONNX folder; it is made when it is first asked for."""
    from dragoman.store.prepared import prepared

    return prepared(folder, "whisper", VERSION, lambda to: convert(folder, to))


def convert(folder: Path, to: Path) -> None:
    """Write the model of an ONNX folder into another, in CTranslate2's format."""
    from ctranslate2.specs import WhisperSpec

    encoder, decoder = (first_file(folder, names) for names in FILES["whisper-onnx"])
    if encoder is None or decoder is None:
        raise DragomanError(f"{folder} holds no Whisper in ONNX: it has no encoder or no decoder.")
    config = read_settings(folder / "config.json", _Config, "a Whisper in ONNX")
    spec = WhisperSpec(
        config.encoder_layers,
        config.encoder_attention_heads,
        config.decoder_layers,
        config.decoder_attention_heads,
    )
    _fill_encoder(spec.encoder, OnnxWeights(encoder))
    _fill_decoder(spec.decoder, OnnxWeights(decoder))
    spec.register_vocabulary(_vocabulary(folder, config.vocab_size))
    _configure(spec.config, config, folder)
    spec.validate()
    spec.decoder.projection.weight = "decoder/embeddings/weight"  # tied, so kept once
    spec.save(str(to))


def _fill_encoder(spec: Any, weights: OnnxWeights) -> None:
    for name in ("conv1", "conv2"):
        conv = getattr(spec, name)
        conv.weight, conv.bias = weights.array(f"{name}.weight"), weights.array(f"{name}.bias")
    spec.position_encodings.encodings = weights.array("embed_positions.weight")
    _norm(spec.layer_norm, weights, "layer_norm")
    for number, layer in enumerate(spec.layer):
        _fill_layer(layer, weights, f"layers.{number}")


def _fill_decoder(spec: Any, weights: OnnxWeights) -> None:
    root = "model.decoder"
    table = weights.table(f"{root}.embed_tokens.weight")
    spec.embeddings.weight, spec.embeddings.weight_scale = table.steps, table.scale
    spec.projection.weight = table.steps
    spec.position_encodings.encodings = weights.array(f"{root}.embed_positions.weight")
    _norm(spec.layer_norm, weights, f"{root}.layer_norm")
    for number, layer in enumerate(spec.layer):
        name = f"{root}.layers.{number}"
        _fill_layer(layer, weights, name)
        _norm(layer.attention.layer_norm, weights, f"{name}.encoder_attn_layer_norm")
        _linear(layer.attention.linear[0], weights, f"{name}.encoder_attn", "q_proj")
        _linear(layer.attention.linear[1], weights, f"{name}.encoder_attn", "k_proj", "v_proj")
        _linear(layer.attention.linear[2], weights, f"{name}.encoder_attn", "out_proj")


def _fill_layer(layer: Any, weights: OnnxWeights, name: str) -> None:
    _norm(layer.self_attention.layer_norm, weights, f"{name}.self_attn_layer_norm")
    linear = layer.self_attention.linear
    _linear(linear[0], weights, f"{name}.self_attn", "q_proj", "k_proj", "v_proj")
    _linear(linear[1], weights, f"{name}.self_attn", "out_proj")
    _norm(layer.ffn.layer_norm, weights, f"{name}.final_layer_norm")
    _linear(layer.ffn.linear_0, weights, name, "fc1")
    _linear(layer.ffn.linear_1, weights, name, "fc2")


def _norm(spec: Any, weights: OnnxWeights, name: str) -> None:
    spec.gamma, spec.beta = weights.array(f"{name}.weight"), weights.array(f"{name}.bias")


def _linear(spec: Any, weights: OnnxWeights, name: str, *parts: str) -> None:
    """Linear layers with the same input, as one. Those that make keys have no bias."""
    joined = Matrix.joined([weights.matrix(f"{name}.{part}") for part in parts])
    width = len(joined.steps) // len(parts)
    none = np.zeros(width, np.float32)
    biases = [f"{name}.{part}.bias" for part in parts]
    spec.weight, spec.weight_scale = joined.steps, joined.scale
    spec.bias = np.concatenate([weights.array(b) if b in weights else none for b in biases])


def _configure(made: Any, config: _Config, folder: Path) -> None:
    """What may be said, the languages, and the heads that tell where the decoder looks."""
    path = folder / "generation_config.json"
    generation = read_settings(path, _Generation, "how a Whisper speaks")
    made.suppress_ids = generation.suppress_tokens or []
    made.suppress_ids_begin = generation.begin_suppress_tokens or []
    made.lang_ids = sorted((generation.lang_to_id or {}).values())
    made.alignment_heads = alignment_heads(
        generation.alignment_heads,
        layers=config.decoder_layers,
        heads=config.decoder_attention_heads,
        words=config.vocab_size,
    )


def _vocabulary(folder: Path, size: int) -> list[str]:
    """The tokens by number, as `tokenizer.json` has them; moments come last."""
    tokenizer = read_settings(folder / "tokenizer.json", _Tokenizer, "a tokenizer")
    ids = tokenizer.model.vocab | {token.content: token.id for token in tokenizer.added_tokens}
    names = sorted(ids, key=ids.__getitem__)
    moments = (f"<|{place / PLACES_PER_SECOND:.2f}|>" for place in range(size - len(names)))
    return [*names, *moments]
