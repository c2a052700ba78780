"""Exported graphs with eight-bit weights: a quarter of the size, faster on most CPUs.

onnxruntime does it for matrix products. Two things it leaves in full precision, and they are most
of a small text net: the table of embeddings, and the output layer where it is tied to that table
(its matrix is then a transposed table, no weight of its own).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from dragoman.models.exported.config import ExportedNet
from dragoman.train.graphs import quiet

FEWEST_ROWS = 256  # of a table that is worth shrinking


def quantise(folder: Path) -> None:
    """Rewrite the graphs of an exported net, and say so in its settings."""
    for name in ("encoder.onnx", "decoder.onnx"):
        with quiet():
            quantise_graph(folder / name)
    replace(ExportedNet.read(folder), precision="int8").write(folder)


def quantise_graph(path: Path) -> None:
    """Rewrite a graph with eight-bit matrices and tables."""
    model = onnx.load(path)
    untie(model.graph)
    full = path.with_name(f"full-{path.name}")
    onnx.save(model, full)
    quantize_dynamic(
        full,
        path,
        op_types_to_quantize=["MatMul", "Gemm"],
        per_channel=True,
        weight_type=QuantType.QInt8,
    )
    full.unlink()
    model = onnx.load(path)
    shrink_tables(model.graph)
    onnx.save(model, path)


def untie(graph: onnx.GraphProto) -> None:
    """Weights that are another weight transposed become weights of their own."""
    weights = {weight.name: weight for weight in graph.initializer}
    for node in [node for node in graph.node if node.op_type == "Transpose"]:
        if node.input[0] not in weights or len(weights[node.input[0]].dims) != 2:
            continue
        turned = numpy_helper.to_array(weights[node.input[0]]).T
        graph.initializer.append(
            numpy_helper.from_array(np.ascontiguousarray(turned), node.output[0])
        )
        graph.node.remove(node)


def shrink_tables(graph: onnx.GraphProto) -> None:
    """Rows that are looked up are kept in eight bits, each with a scale of its own."""
    weights = {weight.name: weight for weight in graph.initializer}
    for place, node in reversed(list(enumerate(graph.node))):
        table = weights.get(node.input[0]) if node.op_type == "Gather" else None
        if table is None or table.data_type != onnx.TensorProto.FLOAT:
            continue
        if len(table.dims) != 2 or table.dims[0] < FEWEST_ROWS:
            continue
        rows, scales = in_eight_bits(numpy_helper.to_array(table))
        name = node.output[0]
        graph.initializer.append(numpy_helper.from_array(rows, f"{name}_table8"))
        graph.initializer.append(numpy_helper.from_array(scales, f"{name}_table8_scales"))
        graph.node.remove(node)
        for new in reversed(_looked_up(name, node.input[1])):
            graph.node.insert(place, new)
    _drop_unused(graph)


def in_eight_bits(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers from -127 to 127 and, for each row, what one of them is worth: [rows, 1]"""
    scales = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
    scales[scales == 0] = 1.0
    return np.rint(table / scales).astype(np.int8), scales.astype(np.float32)


def _looked_up(name: str, index: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Gather", [f"{name}_table8", index], [f"{name}_row8"], axis=0),
        helper.make_node(
            "Cast", [f"{name}_row8"], [f"{name}_row8_float"], to=onnx.TensorProto.FLOAT
        ),
        helper.make_node(
            "Gather", [f"{name}_table8_scales", index], [f"{name}_row8_scale"], axis=0
        ),
        helper.make_node("Mul", [f"{name}_row8_float", f"{name}_row8_scale"], [name]),
    ]


def _drop_unused(graph: onnx.GraphProto) -> None:
    used = {name for node in graph.node for name in node.input}
    used |= {output.name for output in graph.output}
    for weight in [weight for weight in graph.initializer if weight.name not in used]:
        graph.initializer.remove(weight)
