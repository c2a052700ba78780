"""The weights of a net that we exported, out of one of its graphs.

Biases and norms keep the names of their modules. A matrix does not: it is found by following the
sum with its bias back to the product, a table by the lookup of what is put in. In eight bits each
column of a matrix, and each row of a table, has a scale of its own (`train/quantise.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError

Floats = NDArray[np.float32]

PRODUCTS = ("MatMul", "MatMulInteger")
SCALING = ("Mul", "Cast")  # between a product of bytes and what it stands for


class ExportedWeights:
    """All as 32-bit floats."""

    def __init__(self, path: Path) -> None:
        import onnx

        self._path = path
        try:
            self._graph: Any = onnx.load(str(path)).graph
        except Exception as error:  # protobuf's own errors among them
            raise DragomanError(f"Cannot read {path} as an ONNX model: {error}.") from error
        self._stored = {one.name: one for one in self._graph.initializer}
        self._makers = {name: node for node in self._graph.node for name in node.output}

    def array(self, name: str) -> Floats:
        """A bias, or a parameter of a norm."""
        return self._numbers(name).astype(np.float32)

    def matrix(self, module: str) -> Floats:
        """The matrix of a linear layer, `[out, in]`."""
        bias = f"{module}.bias"
        sums = [node for node in self._graph.node if node.op_type == "Add" and bias in node.input]
        if len(sums) != 1:
            raise self._lacking(f"layer '{module}' of its own")
        (product,) = (name for name in sums[0].input if name != bias)
        return self._multiplied(product)

    def last(self) -> Floats:
        """The matrix behind which probabilities are made, `[out, in]`."""
        ends = [node for node in self._graph.node if node.op_type == "LogSoftmax"]
        if len(ends) != 1:
            raise self._lacking("matrix behind which probabilities are made")
        return self._multiplied(ends[0].input[0])

    def table(self, source: str) -> Floats:
        """The rows that are looked up by an input of the graph."""
        rows = {
            node.input[0]
            for node in self._graph.node
            if node.op_type == "Gather" and node.input[1] == source
        }
        found = [self._numbers(name) for name in sorted(rows)]  # in eight bits, and their scales
        if not found:
            raise self._lacking(f"table for '{source}'")
        table: Floats = found[0].astype(np.float32)
        for scales in found[1:]:
            table *= scales
        return table

    def _multiplied(self, name: str) -> Floats:
        """The matrix of the product that a value comes from."""
        node = self._makers[name]
        while node.op_type in SCALING:
            node = self._makers[node.input[0]]
        if node.op_type not in PRODUCTS:
            raise self._lacking(f"matrix behind '{name}'")
        numbers: Floats = self._turned(node.input[1]).astype(np.float32)
        if node.op_type == "MatMul":
            return numbers
        scale = self._numbers(node.input[1].replace("_quantized", "_scale"))
        zero = self._numbers(node.input[3]).astype(np.float32)
        numbers -= zero.reshape(-1, 1)
        numbers *= scale.reshape(-1, 1)
        return numbers

    def _turned(self, name: str) -> NDArray[Any]:
        """A matrix `[out, in]`; graphs have `[in, out]`, or turn it themselves."""
        maker = self._makers.get(name)
        if maker is not None and maker.op_type == "Transpose":
            return self._numbers(maker.input[0])
        return np.ascontiguousarray(self._numbers(name).T)

    def _numbers(self, name: str) -> NDArray[Any]:
        from onnx import numpy_helper

        if name not in self._stored:
            raise self._lacking(f"weight '{name}'")
        numbers: NDArray[Any] = numpy_helper.to_array(self._stored[name])
        return numbers

    def _lacking(self, what: str) -> DragomanError:
        return DragomanError(
            f"{self._path} has no {what}, which a GPU needs.",
            advice="export the net again, or take --device cpu.",
        )
