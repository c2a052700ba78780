"""The weights of an exported net out of graphs so small that one can count."""

import numpy as np
import onnx
import pytest
from numpy.testing import assert_array_equal
from onnx import TensorProto, helper, numpy_helper

from dragoman.errors import DragomanError
from dragoman.models.exported.weights import ExportedWeights

IN_OUT = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]  # two numbers come in, three come out
OUT_IN = [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]


@pytest.fixture
def weights(tmp_path):
    """Of `(operation, inputs, output)` and stored arrays."""

    def read(nodes, **stored) -> ExportedWeights:
        made = [helper.make_node(kind, list(inputs), [output]) for kind, inputs, output in nodes]
        arrays = [
            numpy_helper.from_array(np.array(value), name.replace("__", "."))
            for name, value in stored.items()
        ]
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)]
        told = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        onnx.save(
            helper.make_model(helper.make_graph(made, "g", given, told, arrays)),
            tmp_path / "net.onnx",
        )
        return ExportedWeights(tmp_path / "net.onnx")

    return read


PRODUCT = ("MatMul", ("x", "w"), "p")


@pytest.mark.parametrize("sides", [("p", "wide.bias"), ("wide.bias", "p")])
def test_a_matrix_is_found_by_the_sum_with_its_bias(weights, sides):
    """A bias may be read elsewhere, too, and other layers have sums of their own."""
    found = weights(
        [PRODUCT, ("MatMul", ("x", "other"), "q"), ("Add", ("q", "narrow.bias"), "r")]
        + [("Add", sides, "s"), ("Mul", ("s", "wide.bias"), "y")],
        w=np.float64(IN_OUT), other=np.zeros((2, 3), np.float32),
        wide__bias=np.float64([7, 8, 9]), narrow__bias=np.zeros(3, np.float32),
    )  # fmt: skip
    matrix, bias = found.matrix("wide"), found.array("wide.bias")
    assert_array_equal(matrix, OUT_IN)
    assert_array_equal(bias, [7, 8, 9])
    assert (matrix.dtype, bias.dtype) == (np.float32, np.float32)
    assert matrix.flags.c_contiguous


def test_a_graph_may_turn_a_matrix_itself(weights):
    turned = ("Transpose", ("w",), "t")
    found = weights([turned, ("MatMul", ("x", "t"), "p"), ("LogSoftmax", ("p",), "y")], w=OUT_IN)
    assert_array_equal(found.last(), OUT_IN)


def test_another_step_than_that_is_no_matrix(weights):
    made = ("Relu", ("w",), "t")
    found = weights([made, ("MatMul", ("x", "t"), "p"), ("LogSoftmax", ("p",), "y")], w=OUT_IN)
    with pytest.raises(DragomanError, match="has no weight 't', which a GPU needs"):
        found.last()


BYTES = [
    ("MatMulInteger", ("b", "w_quantized", "b_zero", "w_zero"), "whole"),
    ("Cast", ("whole",), "float"),
    ("Mul", ("float", "scales"), "p"),
]


@pytest.mark.parametrize(
    ("zero", "wanted"),
    [
        (np.int8([0, 0, 0]), [[0.5, 2.0], [4.0, 10.0], [-6.0, 12.0]]),
        (np.int8([1, 0, -1]), [[0.0, 1.5], [4.0, 10.0], [-4.0, 14.0]]),
        (np.int8(1), [[0.0, 1.5], [2.0, 8.0], [-8.0, 10.0]]),
    ],
)
def test_bytes_are_what_they_stand_for(weights, zero, wanted):
    """Each column has a scale, and a byte that stands for nothing, or all have one."""
    found = weights(
        [*BYTES, ("Add", ("p", "wide.bias"), "y")],
        w_quantized=np.int8([[1, 2, -3], [4, 5, 6]]), w_scale=np.float32([0.5, 2, 2]),
        w_zero=zero, wide__bias=np.zeros(3, np.float32),
    )  # fmt: skip
    assert_array_equal(found.matrix("wide"), wanted)


def test_a_table_is_what_an_input_looks_up(weights):
    found = weights(
        [("Gather", ("rows", "x"), "y"), ("Gather", ("others", "position"), "z")]
        + [("GatherElements", ("third", "x"), "u")],
        rows=IN_OUT, others=[[0.0]], third=[[1.0]],
    )  # fmt: skip
    assert_array_equal(found.table("x"), IN_OUT)
    assert found.table("x").dtype == np.float32
    assert_array_equal(found.table("position"), [[0.0]])


def test_a_table_of_bytes_has_a_scale_for_each_row(weights):
    found = weights(
        [("Gather", ("rows_quantized", "x"), "a"), ("Gather", ("rows_scale", "x"), "b")]
        + [("Mul", ("a", "b"), "y")],
        rows_quantized=np.int8([[1, -2], [3, 4]]), rows_scale=np.float32([[2], [0.5]]),
    )  # fmt: skip
    assert_array_equal(found.table("x"), [[2, -4], [1.5, 2]])


@pytest.mark.parametrize(
    ("nodes", "read", "lacking"),
    [
        ([], lambda one: one.matrix("wide"), "layer 'wide' of its own"),
        (
            [PRODUCT, ("Add", ("p", "wide.bias"), "q"), ("Add", ("q", "wide.bias"), "y")],
            lambda one: one.matrix("wide"),
            "layer 'wide' of its own",
        ),
        (
            [PRODUCT, ("Relu", ("p",), "q"), ("Add", ("q", "wide.bias"), "y")],
            lambda one: one.matrix("wide"),
            "matrix behind 'q'",
        ),
        (
            [PRODUCT, ("LogSoftmax", ("p",), "q"), ("LogSoftmax", ("q",), "y")],
            lambda one: one.last(),
            "matrix behind which probabilities are made",
        ),
        ([PRODUCT], lambda one: one.table("x"), "table for 'x'"),
        ([PRODUCT], lambda one: one.array("b"), "weight 'b'"),
    ],
)
def test_what_a_graph_lacks_is_told(weights, nodes, read, lacking):
    found = weights(nodes, w=IN_OUT, wide__bias=[0.0, 0.0, 0.0])
    with pytest.raises(DragomanError, match=f"net.onnx has no {lacking}, which a GPU needs"):
        read(found)
