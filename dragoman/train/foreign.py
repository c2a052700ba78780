"""Weights that no run of ours has made, or that have left their run: a net in eight bits teaches
and starts another as well as the one that it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.models.exported.config import ExportedNet
from dragoman.models.kind import first_file, kind_of
from dragoman.models.moonshine.engine import DECODERS, ENCODERS
from dragoman.models.onnx_weights import Matrix, OnnxWeights
from dragoman.train.recipe import Data, Recipe, Units, Vocabulary

Weights = dict[str, torch.Tensor]


def weights_in(folder: Path) -> Weights | None:
    """The weights of a model's folder by the names that our nets have; None: it is no model."""
    readers = {
        "moonshine": moonshine_weights,
        "exported-text": exported_weights,
        "grafted": exported_weights,
    }
    reader = readers.get(kind_of(folder) or "")
    return None if reader is None else reader(folder)


# ---------------------------------------------------------------- Moonshine


def moonshine_weights(folder: Path) -> Weights:
    """For the net `moonshine`; the units of its embedding are its own."""
    paths = (first_file(folder, names) or folder / names[0] for names in (ENCODERS, DECODERS))
    encoder, decoder = map(OnnxWeights, paths)
    weights = dict(_encoder(encoder)) | dict(_decoder(decoder))
    return {name: torch.from_numpy(np.array(array, np.float32)) for name, array in weights.items()}


def _encoder(file: OnnxWeights) -> Iterator[tuple[str, NDArray[Any]]]:
    for name in ("conv1.weight", "conv2.weight", "conv2.bias", "conv3.weight", "conv3.bias"):
        yield f"encoder.stem.{name}", file.array(name)
    for part, kind in (("scale", "Mul"), ("shift", "Add")):
        yield f"encoder.stem.{part}", file.operand(f"/groupnorm/{kind}").ravel()
    yield "encoder.norm.weight", file.array("layer_norm.weight")
    yield "encoder.angles", file.array("/rotary_emb/Cast_1_output_0").ravel()
    for number in count():
        there, here = f"layers.{number}", f"encoder.layers.{number}"
        if f"{there}.input_layernorm.weight" not in file:
            return
        yield f"{here}.attention_norm.weight", file.array(f"{there}.input_layernorm.weight")
        yield f"{here}.ffn_norm.weight", file.array(f"{there}.post_attention_layernorm.weight")
        yield f"{here}.qkv.weight", _joined(file, *(f"{there}.self_attn.{x}_proj" for x in "qkv"))
        yield f"{here}.out.weight", _joined(file, f"{there}.self_attn.dense")
        for ours, theirs in (("wide", "fc1"), ("narrow", "fc2")):
            yield f"{here}.{ours}.weight", _joined(file, f"{there}.mlp.{theirs}")
            yield f"{here}.{ours}.bias", file.array(f"{there}.mlp.{theirs}.bias")


def _decoder(file: OnnxWeights) -> Iterator[tuple[str, NDArray[Any]]]:
    root = "model.decoder"
    yield "decoder.embedding.weight", _numbers(file.table(f"{root}.embed_tokens.weight"))
    yield "decoder.norm.weight", file.array(f"{root}.norm.weight")
    yield "decoder.angles", file.array("/model/decoder/rotary_emb/Cast_1_output_0").ravel()
    for number in count():
        there, here = f"{root}.layers.{number}", f"decoder.layers.{number}"
        if f"{there}.input_layernorm.weight" not in file:
            return
        norms = {"attention": "input", "cross": "post_attention", "ffn": "final"}
        for ours, theirs in norms.items():
            yield f"{here}.{ours}_norm.weight", file.array(f"{there}.{theirs}_layernorm.weight")
        looked, own = f"{there}.encoder_attn", f"{there}.self_attn"
        yield f"{here}.qkv.weight", _joined(file, *(f"{own}.{x}_proj" for x in "qkv"))
        yield f"{here}.out.weight", _joined(file, f"{own}.dense")
        yield f"{here}.cross_query.weight", _joined(file, f"{looked}.q_proj")
        yield f"{here}.cross_memory.weight", _joined(file, *(f"{looked}.{x}_proj" for x in "kv"))
        yield f"{here}.cross_out.weight", _joined(file, f"{looked}.dense")
        for ours, theirs in (("wide", "up_proj"), ("narrow", "down_proj")):
            yield f"{here}.{ours}.weight", _joined(file, f"{there}.mlp.{theirs}")
            yield f"{here}.{ours}.bias", file.array(f"{there}.mlp.{theirs}.bias")


def _joined(file: OnnxWeights, *modules: str) -> NDArray[np.float32]:
    return np.concatenate([_numbers(file.matrix(module)) for module in modules])


def _numbers(matrix: Matrix) -> NDArray[np.float32]:
    return matrix.steps.astype(np.float32) / matrix.scale[:, None]


# ---------------------------------------------------------------- our own exported nets


def is_exported(folder: Path) -> bool:
    return kind_of(folder) == "exported-text"


def exported_recipe(folder: Path) -> Recipe:
    """What is known of the recipe of an exported text net."""
    net = ExportedNet.read(folder)
    data = Data((str(folder),), source=net.languages.source, target=net.languages.target)
    sides = (Units(suffix=net.source_suffix, plain=net.source_plain), Units(suffix=net.suffix))
    return Recipe(net.net, data, "mt", net.settings, vocabulary=Vocabulary(*sides))


def exported_weights(folder: Path) -> Weights:
    """For the nets `text-transformer` and `grafted`; a matrix has no name in a graph, but its bias
    has."""
    import onnx
    from onnx import numpy_helper

    tables = {"decoder.onnx": "decoder.embedding"}
    if ExportedNet.read(folder).input == "text":
        tables["encoder.onnx"] = "embedding"
    weights: Weights = {}
    for name in ("encoder.onnx", "decoder.onnx"):
        graph = onnx.load(str(folder / name)).graph
        arrays = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
        named = {key.removeprefix("net."): arrays[key] for key in arrays if key.startswith("net.")}
        weights |= {key: torch.from_numpy(array.copy()) for key, array in named.items()}
        # Every matrix belongs to the bias that is added to its product.
        made = {node.output[0]: node for node in graph.node}
        for node in graph.node:
            bias = next((key for key in node.input if key.startswith("net.")), "")
            if node.op_type != "Add" or not bias.endswith(".bias"):
                continue
            matrix = _matrix_behind(node, made, arrays)
            weights[bias.removeprefix("net.").removesuffix("bias") + "weight"] = matrix
        if name in tables:
            weights[f"{tables[name]}.weight"] = _table(graph, arrays)
    # The last product of the decoder has no bias: it is what units are chosen by.
    last = [node for node in graph.node if node.op_type == "MatMulInteger"][-1]
    weights["decoder.output.weight"] = _numbers_of(last, arrays)
    return weights


def _table(graph: Any, arrays: dict[str, Any]) -> torch.Tensor:
    """The rows that units are looked up in."""
    looked_up = [node.input[0] for node in graph.node if node.op_type == "Gather"]
    tables = [arrays[name] for name in looked_up if name in arrays and arrays[name].ndim == 2]
    table = max(tables, key=np.size)
    numbers = table.astype(np.float32)
    if table.dtype == np.int8:
        scales = next(one for one in tables if one.shape == (len(table), 1))
        numbers *= scales
    return torch.from_numpy(numbers)


def _matrix_behind(node: Any, made: dict[str, Any], arrays: dict[str, Any]) -> torch.Tensor:
    """The 8-bit matrix whose product is added to a bias, as numbers `[out, in]`."""
    todo = list(node.input)
    while todo:
        step = made.get(todo.pop(0))
        if step is None:
            continue
        if step.op_type == "MatMulInteger":
            return _numbers_of(step, arrays)
        if step.op_type in ("Mul", "Cast"):
            todo += list(step.input)
    raise KeyError(node.name)


def _numbers_of(product: Any, arrays: dict[str, Any]) -> torch.Tensor:
    """The 8-bit matrix of a product as numbers `[out, in]`."""
    name = product.input[1].removesuffix("_quantized")
    numbers = arrays[f"{name}_quantized"].astype(np.float32)
    numbers -= arrays[f"{name}_zero_point"].astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray((numbers * arrays[f"{name}_scale"]).T))
