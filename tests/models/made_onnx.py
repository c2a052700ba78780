"""ONNX files with the names of the usual exporter: only their weights are read, so that is all they
hold. Matrices are quantized with one step for all, as onnxruntime's tool does it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np


class Exported:
    """Collects the parameters of a net, and knows what they are after rounding."""

    def __init__(self, kind: type[np.integer] | None = np.uint8, seed: int = 0) -> None:
        """`kind` of the quantized numbers; None leaves them as they are."""
        self.kind = kind
        self.random = np.random.default_rng(seed)
        self.rounded: dict[str, np.ndarray] = {}  # as a module has them, [out, in]
        self._constants: list = []
        self._nodes: list = []

    def normal(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape).astype(np.float32)

    def plain(self, name: str, *shape: int) -> None:
        """A parameter that is not quantized."""
        self.rounded[name] = self.normal(*shape)
        self._constant(name, self.rounded[name])

    def quantized(
        self,
        name: str,
        *shape: int,
        transposed: bool = False,
        stored: str = "",
        size: float = 1.0,
    ) -> None:
        numbers = size * (self.normal(*shape) + 0.3) * np.float32(shape[-1] ** -0.5)
        if self.kind is None:
            self.rounded[name] = numbers
            self._constant(stored or name, numbers.T if transposed else numbers)
            return
        info = np.iinfo(self.kind)
        step = np.float32((numbers.max() - numbers.min()) / (info.max - info.min))
        zero = int(np.rint(info.min - numbers.min() / step))
        steps = np.clip(np.rint(numbers / step) + zero, info.min, info.max).astype(self.kind)
        self.rounded[name] = (steps.astype(np.float32) - zero) * step
        stored = stored or name
        self._constant(f"{stored}_quantized", steps.T if transposed else steps)
        self._constant(f"{stored}_scale", np.float32(step))
        self._constant(f"{stored}_zero_point", self.kind(zero))

    def linear(
        self, module: str, rows: int, columns: int, *, bias: bool = True, size: float = 1.0
    ) -> None:
        """A linear layer, whose matrix has a name that says nothing; `size` is that of numbers."""
        from onnx import helper

        stored = f"onnx::MatMul_{len(self._nodes)}_merged_0"
        self.quantized(f"{module}.weight", rows, columns, transposed=True, stored=stored, size=size)
        path = "/" + re.sub(r"\.(?!\d)", "/", module)
        kind = "MatMul" if self.kind is None else "MatMulInteger"
        name = f"{path}/MatMul" + ("" if self.kind is None else "_quant")
        weight = stored if self.kind is None else f"{stored}_quantized"
        self._nodes.append(helper.make_node(kind, ["x", weight], [f"y{len(self._nodes)}"], name))
        if bias:
            self.plain(f"{module}.bias", rows)

    def operand(self, node: str, name: str, *shape: int) -> None:
        """A parameter that is known only as the second input of a node."""
        from onnx import helper

        self.plain(name, *shape)
        kind = node.rsplit("/", 1)[1]
        self._nodes.append(helper.make_node(kind, ["x", name], [f"y{len(self._nodes)}"], node))

    def write(self, path: Path) -> None:
        from onnx import TensorProto, helper

        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
        graph = helper.make_graph(self._nodes, "made", [x], [], self._constants)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(helper.make_model(graph).SerializeToString())

    def _constant(self, name: str, value: np.ndarray) -> None:
        from onnx import numpy_helper

        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))


WIDTH, HEADS, LAYERS, BANDS = 8, 2, 2, 80


def whisper(folder: Path, names: list[str], kind: type[np.integer] | None) -> dict[str, np.ndarray]:
    """A folder with a Whisper; returns its parameters by the names of their modules."""
    encoder, decoder = Exported(kind, 1), Exported(kind if kind is None else np.int8, 2)
    encoder.quantized("conv1.weight", WIDTH, BANDS, 3)
    encoder.quantized("conv2.weight", WIDTH, WIDTH, 3)
    for name in ("conv1.bias", "conv2.bias", "layer_norm.weight", "layer_norm.bias"):
        encoder.plain(name, WIDTH)
    encoder.plain("embed_positions.weight", 1500, WIDTH)
    root = "model.decoder"
    decoder.quantized(f"{root}.embed_tokens.weight", len(names), WIDTH)
    decoder.plain(f"{root}.embed_positions.weight", 448, WIDTH)
    for name in ("weight", "bias"):
        decoder.plain(f"{root}.layer_norm.{name}", WIDTH)
    for number in range(LAYERS):
        _layer(encoder, f"layers.{number}", ["self_attn"])
        _layer(decoder, f"{root}.layers.{number}", ["self_attn", "encoder_attn"])
    encoder.write(folder / "onnx" / f"encoder_model{'_quantized' if kind else ''}.onnx")
    decoder.write(folder / "onnx" / f"decoder_model_merged{'_quantized' if kind else ''}.onnx")
    _settings(folder, names)
    return encoder.rounded | decoder.rounded


def _layer(net: Exported, name: str, attentions: list[str]) -> None:
    for attention in attentions:
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            net.linear(f"{name}.{attention}.{part}", WIDTH, WIDTH, bias=part != "k_proj")
    net.linear(f"{name}.fc1", 4 * WIDTH, WIDTH)
    net.linear(f"{name}.fc2", WIDTH, 4 * WIDTH)
    for norm in (*(f"{one}_layer_norm" for one in attentions), "final_layer_norm"):
        for part in ("weight", "bias"):
            net.plain(f"{name}.{norm}.{part}", WIDTH)


def _settings(folder: Path, names: list[str]) -> None:
    text = [name for name in names if not name.startswith("<|")]
    special = [name for name in names if name.startswith("<|") and not name[2:3].isdigit()]
    tokenizer = {
        "model": {"vocab": {name: number for number, name in enumerate(text)}},
        "added_tokens": [{"content": n, "id": names.index(n)} for n in special],
    }
    config = {
        "encoder_layers": LAYERS,
        "encoder_attention_heads": HEADS,
        "decoder_layers": LAYERS,
        "decoder_attention_heads": HEADS,
        "vocab_size": len(names),
    }
    generation = {
        "suppress_tokens": [3],
        "begin_suppress_tokens": [5],
        "lang_to_id": {"<|de|>": names.index("<|de|>"), "<|en|>": names.index("<|en|>")},
        "alignment_heads": [[1, 1]],
    }
    files = {"tokenizer": tokenizer, "config": config, "generation_config": generation}
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")


MOONSHINE_HEADS, HEAD, TURNING, MOONSHINE_LAYERS, WORDS = 8, 6, 4, 2, 40
MOONSHINE_WIDTH, INNER = MOONSHINE_HEADS * HEAD, 32


def moonshine_decoder(path: Path, kind: type[np.integer] | None) -> dict[str, np.ndarray]:
    """A file with Moonshine's decoder; returns its parameters by the names of their modules."""
    net, root, width = Exported(kind, 3), "model.decoder", MOONSHINE_WIDTH
    net.quantized(f"{root}.embed_tokens.weight", WORDS, width)
    net.plain(f"{root}.norm.weight", width)
    angles = 10_000.0 ** (-np.arange(TURNING // 2) / (TURNING // 2))
    net._constant("/model/decoder/rotary_emb/Cast_1_output_0", angles.astype(np.float32)[None])
    for number in range(MOONSHINE_LAYERS):
        layer = f"{root}.layers.{number}"
        for attention in ("self_attn", "encoder_attn"):
            for part in ("q_proj", "k_proj", "v_proj", "dense"):
                net.linear(f"{layer}.{attention}.{part}", width, width, bias=False)
        net.linear(f"{layer}.mlp.up_proj", 2 * INNER, width)
        net.linear(f"{layer}.mlp.down_proj", width, INNER)
        for norm in ("input_layernorm", "post_attention_layernorm", "final_layernorm"):
            net.plain(f"{layer}.{norm}.weight", width)
    net.write(path)
    return net.rounded


def moonshine_encoder(path: Path, kind: type[np.integer] | None) -> dict[str, np.ndarray]:
    """A file with Moonshine's encoder; returns its parameters by the names of their modules."""
    net, width = Exported(kind, 4), MOONSHINE_WIDTH
    net.quantized("conv1.weight", width, 1, 127)
    net.quantized("conv2.weight", 2 * width, width, 7, size=0.1)
    net.quantized("conv3.weight", width, 2 * width, 3, size=0.05)
    net.plain("conv2.bias", 2 * width)
    net.plain("conv3.bias", width)
    for part in ("Mul", "Add"):
        net.operand(f"/groupnorm/{part}", f"onnx::{part}_7", width, 1)
    angles = 10_000.0 ** (-np.arange(TURNING // 2) / (TURNING // 2))
    net._constant("/rotary_emb/Cast_1_output_0", angles.astype(np.float32)[None])
    for number in range(MOONSHINE_LAYERS):
        layer = f"layers.{number}"
        for part in ("q_proj", "k_proj", "v_proj", "dense"):
            sharp = 3.0 if part == "q_proj" else 1.0  # it shall matter where a state looks
            net.linear(f"{layer}.self_attn.{part}", width, width, bias=False, size=sharp)
        net.linear(f"{layer}.mlp.fc1", INNER, width)
        net.linear(f"{layer}.mlp.fc2", width, INNER)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            net.plain(f"{layer}.{norm}.weight", width)
    net.plain("layer_norm.weight", width)
    net.write(path)
    return net.rounded
