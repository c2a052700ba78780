"""The weights of somebody else's ONNX file, by the path of the module that they belong to.

The usual exporter names its nodes after the modules: `/layers.0/fc1/MatMul` multiplies by the
matrix of `layers.0.fc1`. Files in ONNX Runtime's own format (.ort) keep those names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError

MULTIPLYING = ("MatMulInteger", "MatMul")
ADDED = ("_quantized", "_add_tensor", "_cast_tensor")  # to a name by the quantizing of a matrix


@dataclass(frozen=True, slots=True)
class Matrix:
    """8-bit rows `[out, in]`; a number is a row's byte divided by the row's scale."""

    steps: NDArray[np.int8]
    scale: NDArray[np.float32]

    @classmethod
    def of(cls, numbers: NDArray[Any], step: float) -> Matrix:
        """Of numbers that stand for so many steps each; whole ones that fit into a byte stay."""
        least = np.float32(1.0 if numbers.dtype.kind == "i" else 1e-9)
        wider = np.maximum(np.abs(numbers).max(axis=1) / np.float32(127.0), least)
        steps = np.rint(numbers / wider[:, None]).astype(np.int8)
        return cls(steps, (1.0 / (step * wider)).astype(np.float32))

    @classmethod
    def joined(cls, parts: list[Matrix]) -> Matrix:
        """Matrices with the same input, as one."""
        return cls(
            np.concatenate([part.steps for part in parts]),
            np.concatenate([part.scale for part in parts]),
        )


class Node(NamedTuple):
    kind: str
    name: str
    inputs: list[str]


Arrays = dict[str, Callable[[], NDArray[Any]]]


class OnnxWeights:
    """The weights of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._arrays, nodes = (_read_ort if path.suffix == ".ort" else _read_onnx)(path)
        except Exception as error:  # protobuf's and flatbuffers' own errors among them
            raise DragomanError(f"Cannot read {path} as an ONNX model: {error}.") from error
        self._of_module: dict[str, str] = {}
        self._operands = {node.name: node.inputs[1] for node in nodes if len(node.inputs) > 1}
        for node in nodes:
            if node.kind in MULTIPLYING and len(node.inputs) > 1:
                module = node.name.strip("/").rsplit("/", 1)[0].replace("/", ".")
                self._of_module.setdefault(module, _bare(node.inputs[1]))

    def __contains__(self, name: str) -> bool:
        return name in self._arrays or f"{name}_quantized" in self._arrays

    def array(self, name: str) -> NDArray[np.float32]:
        """A parameter as numbers: a bias, a norm, positions, the filters of a convolution."""
        steps, step = self._quantized(name)
        return steps.astype(np.float32) * np.float32(step)

    def operand(self, node: str) -> NDArray[np.float32]:
        """A parameter without a name of its own: the second input of a node."""
        if node not in self._operands:
            raise DragomanError(f"{self.path} has no node '{node}'.")
        return self.array(self._operands[node])

    def matrix(self, module: str) -> Matrix:
        """The matrix of a linear layer, which ONNX keeps as `[in, out]`."""
        if module not in self._of_module:
            raise DragomanError(f"{self.path} has no layer '{module}'.")
        steps, step = self._quantized(self._of_module[module])
        return Matrix.of(steps.T, step)

    def table(self, name: str) -> Matrix:
        """A table with a row per token."""
        return Matrix.of(*self._quantized(name))

    def _quantized(self, name: str) -> tuple[NDArray[Any], float]:
        """A parameter as steps and the size of a step."""
        if f"{name}_quantized" not in self._arrays:
            return self._stored(name).astype(np.float32), 1.0
        step = float(self._stored(f"{name}_scale").item())
        zero = self._stored(f"{name}_zero_point")
        steps = self._stored(f"{name}_quantized")
        if zero.dtype.kind == "f":  # a number that is added, not a step that is taken off
            return steps + zero / np.float32(step), step
        return steps - zero.astype(np.int16), step

    def _stored(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            raise DragomanError(f"{self.path} has no weight '{name}'.")
        return self._arrays[name]()


def _read_onnx(path: Path) -> tuple[Arrays, list[Node]]:
    import onnx
    from onnx import numpy_helper

    def nodes(graph: Any) -> Iterator[Node]:
        """All nodes, those of graphs within nodes included."""
        for node in graph.node:
            yield Node(node.op_type, node.name, [_unmerged(name) for name in node.input])
            for attribute in node.attribute:
                yield from nodes(attribute.g)

    def reader(tensor: Any) -> Callable[[], NDArray[Any]]:
        return lambda: numpy_helper.to_array(tensor)

    graph = onnx.load(str(path)).graph
    return {_unmerged(one.name): reader(one) for one in graph.initializer}, list(nodes(graph))


def _read_ort(path: Path) -> tuple[Arrays, list[Node]]:
    from onnx import helper

    def name(raw: bytes) -> str:
        return _unmerged(raw.decode())

    def nodes(graph: Any) -> Iterator[Node]:
        for node in map(graph.Nodes, range(graph.NodesLength())):
            inputs = [name(node.Inputs(i)) for i in range(node.InputsLength())]
            yield Node(node.OpType().decode(), node.Name().decode(), inputs)
            for attribute in map(node.Attributes, range(node.AttributesLength())):
                if attribute.G() is not None:
                    yield from nodes(attribute.G())

    def reader(tensor: Any) -> Callable[[], NDArray[Any]]:
        kind = helper.tensor_dtype_to_np_dtype(tensor.DataType())
        shape = [tensor.Dims(i) for i in range(tensor.DimsLength())]
        return lambda: np.frombuffer(tensor.RawDataAsNumpy().tobytes(), kind).reshape(shape)

    session = _ort_schema().InferenceSession.GetRootAs(path.read_bytes(), 0)
    graph = session.Model().Graph()
    tensors = map(graph.Initializers, range(graph.InitializersLength()))
    return {name(tensor.Name()): reader(tensor) for tensor in tensors}, list(nodes(graph))


def _ort_schema() -> Any:
    """How to read ONNX Runtime's format. Its package of tools is passed by: it imports torch, where
    that is installed, which takes seconds."""
    import onnxruntime

    place = str(Path(onnxruntime.__file__).parent / "tools" / "ort_format_model")
    if place not in sys.path:
        sys.path.append(place)
    return import_module("ort_flatbuffers_py.fbs.InferenceSession")


def _unmerged(name: str) -> str:
    """A name without what is added to it when two graphs are merged into one."""
    return name.replace("_merged_0", "")


def _bare(name: str) -> str:
    for added in ADDED:
        name = name.removesuffix(added)
    return name
