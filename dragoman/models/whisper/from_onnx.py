"""A Whisper in ONNX, as it comes from the usual exporter, as a folder in CTranslate2's format.

So there is one way to run Whisper, whatever it came in. 8-bit weights stay what they are: only
rows that do not fit into a byte once their zero point is taken off are rounded again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.errors import DragomanError
from dragoman.models.kind import FILES
from dragoman.models.onnx_weights import Matrix, OnnxWeights
from dragoman.models.options import Options
from dragoman.models.whisper.alignment import alignment_heads
from dragoman.models.whisper.model import WhisperModel

VERSION = 1  # of the folders that are made
PLACES_PER_SECOND = 50  # in Whisper's tokens for moments


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

    encoder, decoder = (_first(folder, names) for names in FILES["whisper-onnx"])
    if encoder is None or decoder is None:
        raise DragomanError(f"{folder} holds no Whisper in ONNX: it has no encoder or no decoder.")
    config = _settings(folder / "config.json")
    try:
        spec = WhisperSpec(
            config["encoder_layers"],
            config["encoder_attention_heads"],
            config["decoder_layers"],
            config["decoder_attention_heads"],
        )
        size = int(config["vocab_size"])
    except KeyError as error:
        raise DragomanError(f"{folder / 'config.json'} does not say {error}.") from error
    _fill_encoder(spec.encoder, OnnxWeights(encoder))
    _fill_decoder(spec.decoder, OnnxWeights(decoder))
    spec.register_vocabulary(_vocabulary(folder, size))
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


def _configure(made: Any, config: dict[str, Any], folder: Path) -> None:
    """What may be said, the languages, and the heads that tell where the decoder looks."""
    generation = _settings(folder / "generation_config.json")
    made.suppress_ids = generation.get("suppress_tokens") or []
    made.suppress_ids_begin = generation.get("begin_suppress_tokens") or []
    made.lang_ids = sorted(generation.get("lang_to_id", {}).values())
    made.alignment_heads = alignment_heads(
        generation.get("alignment_heads"),
        layers=config["decoder_layers"],
        heads=config["decoder_attention_heads"],
        words=config["vocab_size"],
    )


def _vocabulary(folder: Path, size: int) -> list[str]:
    """The tokens by number, as `tokenizer.json` has them; moments come last."""
    tokenizer = _settings(folder / "tokenizer.json")
    try:
        ids = dict(tokenizer["model"]["vocab"])
        ids |= {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    except (KeyError, TypeError) as error:
        raise DragomanError(f"{folder / 'tokenizer.json'} is no tokenizer: no {error}.") from error
    names = sorted(ids, key=ids.__getitem__)
    moments = (f"<|{place / PLACES_PER_SECOND:.2f}|>" for place in range(size - len(names)))
    return [*names, *moments]


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DragomanError(f"Cannot read {path}: {error}.") from error
    return settings


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)
