"""Whether sums of products of bytes are exact on this processor, as onnxruntime makes them.

On processors of Intel's kind its fast way rounds sums of two products to 16 bits, unless the
processor can sum up 8-bit products (VNNI). There is an option against that, which is said to do
nothing where there is no need; it makes products of large matrices slower there. So the option is
set only where a product comes out wrong without it. With it, floats are the faster choice for many
rows at a time, such as the states of an encoder.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

OPTION = "session.x64quantprecision"  # slow and exact
SIZE = 64  # of a matrix that fills every register
ROWS = (1, 8)  # a vector and a matrix have ways of their own


def make_exact(options: Any) -> None:
    """Let sessions with these options sum up exactly."""
    if not are_exact():
        options.add_session_config_entry(OPTION, "1")


@cache
def are_exact() -> bool:
    """Whether the largest products come out right without the option."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(_product(), options, ["CPUExecutionProvider"])
    found = [session.run(None, {"x": np.full((n, SIZE), 255, np.uint8)})[0] for n in ROWS]
    return all((one == 255 * 127 * SIZE).all() for one in found)


def _product() -> bytes:
    """Unsigned bytes `x` times a matrix of the largest signed ones."""
    from onnx import TensorProto, helper, numpy_helper

    matrix = numpy_helper.from_array(np.full((SIZE, SIZE), 127, np.int8), "matrix")
    node = helper.make_node("MatMulInteger", ["x", "matrix"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, None)
    y = helper.make_tensor_value_info("y", TensorProto.INT32, None)
    graph = helper.make_graph([node], "product", [x], [y], [matrix])
    opsets = [helper.make_opsetid("", 18)]
    made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    return made
