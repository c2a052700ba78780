"""Eight-bit graphs: what onnxruntime leaves in full precision is shrunk, too."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dragoman.models.byte_sums import make_exact
from dragoman.train.quantise import in_eight_bits, quantise_graph

ROWS, WIDTH = 300, 16
OPSET = [helper.make_opsetid("", 20)]


@pytest.fixture
def tied(tmp_path):
    """Looks rows up, and multiplies them with the same table, transposed."""
    table = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
    table[7] = 0
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["rows"]),
        helper.make_node("Transpose", ["table"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["rows", "turned"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tied",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["B", "U"])],
        [
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["B", "U", ROWS]),
            helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["B", "U", WIDTH]),
        ],
        [numpy_helper.from_array(table, "table")],
    )
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=OPSET, ir_version=10), path)
    return path, table


def run(path, tokens):
    options = onnxruntime.SessionOptions()
    make_exact(options)
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return session.run(None, {"tokens": tokens})


def test_a_tied_net_says_the_same_in_a_quarter_of_the_size(tied):
    path, table = tied
    tokens = np.array([[3, 7, 299], [0, 1, 2]])
    logits, _ = run(path, tokens)
    quantise_graph(path)
    logits8, rows8 = run(path, tokens)
    assert np.abs(rows8 - table[tokens]).max() <= np.abs(table).max() / 127 / 2 * 1.01
    assert not rows8[0, 1].any()
    assert np.abs(logits8 - logits).max() < 0.05 * np.abs(logits).max()
    assert not np.array_equal(logits8, logits)
    full = [w.name for w in onnx.load(path).graph.initializer
            if w.data_type == TensorProto.FLOAT and np.prod(w.dims) >= ROWS * WIDTH]  # fmt: skip
    assert full == []
    assert not list(path.parent.glob("full-*"))


def test_eight_bits_are_worth_their_scale():
    table = np.array([[1.27, -0.5, 0.0], [0.0, 0.0, 0.0], [-254.0, 2.0, 127.0]], np.float32)
    rows, scales = in_eight_bits(table)
    assert rows.dtype == np.int8
    assert rows.tolist() == [[127, -50, 0], [0, 0, 0], [-127, 1, 64]]
    assert np.allclose(scales[:, 0], [0.01, 1.0, 2.0])


def test_small_tables_are_left_alone(tmp_path):
    table = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "tokens"], ["rows"])],
        "small",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["B"])],
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["B", 4])],
        [numpy_helper.from_array(table, "table")],
    )
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=OPSET, ir_version=10), path)
    quantise_graph(path)
    assert np.array_equal(run(path, np.array([3]))[0], table[[3]])
