"""Networks of voices by torch: every operation does what onnxruntime does."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dragoman.errors import DragomanError
from dragoman.voices import kokoro, open_voice
from dragoman.voices.gpu.graph import TorchNetwork
from dragoman.voices.gpu.operations import OPERATIONS
from dragoman.voices.network import load_network, run_on
from tests.voices.weights import need

random = np.random.default_rng(1)
X = random.normal(size=(1, 4, 9)).astype(np.float32)  # a thing to do things to
Y = random.normal(size=(1, 4, 9)).astype(np.float32)
SQUARE = random.normal(size=(4, 4)).astype(np.float32)
ROW = np.arange(9, dtype=np.float32)


def ints(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float32)


# operation: (what flows in, constants behind it, attributes); None is an input that is left out
PLAIN = [
    *((name, [X, Y], [], {}) for name in ("Add", "Sub", "Mul", "Div", "Less", "Greater")),
    *((name, [X, X], [], {}) for name in ("Equal", "LessOrEqual", "GreaterOrEqual")),
    *(
        (name, [X], [], {})
        for name in ("Atan", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Relu", "Round")
    ),
    *((name, [X], [], {}) for name in ("Shape", "Sigmoid", "Sin", "Softplus", "Tanh")),
    ("Add", [X, np.float32(2)], [], {}),
    ("And", [X > 0, Y > 0], [], {}),
    ("Cast", [X], [], {"to": TensorProto.INT64}),
    ("Cast", [X], [], {"to": TensorProto.BOOL}),
    ("Clip", [X], [np.float32(-0.5), np.float32(0.5)], {}),
    ("Clip", [X], [np.float32(-0.5)], {}),
    ("Concat", [X, Y], [], {"axis": -1}),
    ("ConstantOfShape", [ints(2, 3)], [], {"value": numpy_helper.from_array(floats(0.5))}),
    ("Conv", [X], [random.normal(size=(5, 4, 3)).astype(np.float32)], {"pads": [1, 1]}),
    ("Conv", [X], [random.normal(size=(5, 4, 2)).astype(np.float32)], {"pads": [1, 0]}),
    (
        "Conv",
        [X],
        [random.normal(size=(4, 2, 3)).astype(np.float32), floats(1, 2, 3, 4)],
        {"dilations": [2], "strides": [2], "group": 2},
    ),
    (
        "ConvTranspose",
        [X],
        [random.normal(size=(4, 3, 6)).astype(np.float32), floats(1, 2, 3)],
        {"strides": [3], "pads": [1, 1]},
    ),
    (
        "ConvTranspose",  # each channel by itself
        [X],
        [random.normal(size=(4, 1, 3)).astype(np.float32), floats(1, 2, 3, 4)],
        {"strides": [2], "pads": [1, 1], "output_padding": [1], "group": 4},
    ),
    ("CumSum", [X], [ints(1).reshape(())], {}),
    ("DequantizeLinear", [np.array([3, 200], np.uint8)], [np.float32(0.5), np.uint8(128)], {}),
    ("Div", [ints(7, -7)], [ints(2, 2)], {}),
    ("Expand", [X], [ints(3, 1, 9)], {}),
    ("Gather", [X], [ints(2, -1)], {"axis": 2}),
    ("Gather", [X], [np.array(-1)], {"axis": 1}),
    ("Gather", [X, ints(0, 3).reshape(2, 1)], [], {"axis": 1}),
    ("GatherElements", [X], [ints(1, -1, 0, 2).reshape(1, 4, 1)], {"axis": 2}),
    ("GatherND", [X], [ints(0, 1, 2, 0, 3, 8).reshape(2, 3)], {}),
    ("LayerNormalization", [X], [ROW + 1, ROW], {"axis": -1, "epsilon": 1e-3}),
    ("LeakyRelu", [X], [], {"alpha": 0.2}),
    ("MatMul", [SQUARE, X], [], {}),
    ("NonZero", [X > 0], [], {}),
    ("Not", [X > 0], [], {}),
    ("Pad", [X], [ints(0, 1, 2, 0, 0, 3), np.float32(7)], {"mode": "constant"}),
    ("Pad", [X], [ints(0, 0, 2, 0, 0, 3)], {"mode": "reflect"}),
    ("Pow", [X], [np.float32(2)], {}),
    ("Range", [np.array(1), np.array(9), np.array(3)], [], {}),
    ("ReduceMax", [X], [], {"keepdims": 0}),
    ("ReduceMean", [X], [ints(-1)], {"keepdims": 1}),
    ("ReduceSum", [X], [ints(1, 2)], {"keepdims": 0}),
    ("Reshape", [X], [ints(0, 2, -1)], {}),
    ("Resize", [X], [None, floats(1, 1, 3)], {"mode": "nearest", "nearest_mode": "floor",
     "coordinate_transformation_mode": "asymmetric"}),
    ("Resize", [X], [None, floats(1, 1, 4)], {"mode": "linear",
     "coordinate_transformation_mode": "half_pixel"}),
    ("STFT", [random.normal(size=(1, 40, 1)).astype(np.float32)],
     [np.array(5), np.hanning(10).astype(np.float32), np.array(10)], {"onesided": 1}),
    ("ScatterND", [X], [ints(0, 1, 2, 0, 3, 8).reshape(2, 3), floats(5, 6)], {}),
    ("Slice", [X], [ints(1, 2), ints(3, 99), ints(1, 2), ints(1, 3)], {}),
    ("Slice", [X], [ints(-1), ints(-99), ints(2), ints(-2)], {}),
    ("Slice", [X], [ints(0), ints(1)], {}),
    ("Softmax", [X], [], {"axis": 1}),
    ("Split", [X], [ints(1, 3)], {"axis": 1}),
    ("Sqrt", [np.abs(X)], [], {}),
    ("Squeeze", [X], [ints(0)], {}),
    ("Transpose", [X], [], {"perm": [2, 0, 1]}),
    ("Unsqueeze", [X], [ints(-1, 0)], {}),
    ("Where", [X > 0, X, Y], [], {}),
]  # fmt: skip
MICROSOFT = [
    ("FastGelu", [X], [], {}),
    ("FastGelu", [X], [ROW], {}),
    ("FusedMatMul", [SQUARE, X], [], {"transA": 1, "alpha": 0.5}),
    ("SkipLayerNormalization", [X, Y], [ROW + 1, ROW], {"epsilon": 1e-3}),
]


def graph_of(name, flows, constants, settings, domain="", outputs=1):
    given = [f"x{number}" for number in range(len(flows))]
    behind = ["" if value is None else f"c{number}" for number, value in enumerate(constants)]
    made = [f"y{number}" for number in range(2 if name == "Split" else outputs)]
    node = helper.make_node(name, [*given, *behind], made, domain=domain, **settings)
    return model_of(
        [node],
        dict(zip(given, flows, strict=True)),
        {place: value for place, value in zip(behind, constants, strict=True) if place},
        made,
    )


def model_of(nodes, flows, constants, outputs):
    def described(name, value):
        kind = helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype)
        return helper.make_tensor_value_info(name, kind, np.shape(value))

    graph = helper.make_graph(
        nodes,
        "test",
        [described(name, value) for name, value in flows.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def both(model, flows, folder):
    """What onnxruntime makes of it, and what we do."""
    path = folder / "net.onnx"
    onnx.save(model, str(path))
    given = {f"x{number}": np.asarray(value) for number, value in enumerate(flows)}
    theirs = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return theirs.run(None, given), TorchNetwork(path, "cpu").run(None, given)


@pytest.mark.parametrize(
    "case",
    [(*case, "") for case in PLAIN] + [(*case, "com.microsoft") for case in MICROSOFT],
    ids=lambda case: case[0],
)
def test_an_operation_is_that_of_onnxruntime(case, tmp_path):
    name, flows, constants, settings, domain = case
    expected, made = both(graph_of(name, flows, constants, settings, domain), flows, tmp_path)
    for one, other in zip(expected, made, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-3 if name == "FastGelu" else 1e-4, atol=1e-4)


def test_every_operation_is_tried():
    tried = {name for name, *_ in PLAIN + MICROSOFT}
    elsewhere = {"ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeLinear", "MatMulInteger"}
    assert set(OPERATIONS) == tried | elsewhere | {"RandomNormalLike"}


def quantised(weights):
    """uint8, with its scale and zero."""
    low, high = min(0, weights.min()), max(0, weights.max())
    scale = np.float32((high - low) / 255)
    zero = np.uint8(round(-low / scale))
    return np.clip(np.round(weights / scale) + zero, 0, 255).astype(np.uint8), scale, zero


@pytest.mark.parametrize("kind", ["MatMulInteger", "ConvInteger"])
def test_a_quantised_layer_is_one_of_floats_by_its_weights(kind, tmp_path):
    weights = random.normal(size=(9, 5) if kind == "MatMulInteger" else (5, 4, 3))
    number, scale, zero = quantised(weights.astype(np.float32))
    bias = floats(0.3)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x0"], ["q", "s", "z"]),
        helper.make_node(kind, ["q", "w", "z", "wz"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "ws"], ["both"]),
        helper.make_node("Mul", ["f", "both"], ["made"]),
        helper.make_node("Add", ["made", "bias"], ["y"]),
    ]
    constants = {"w": number, "wz": zero, "ws": scale, "bias": bias}
    expected, made = both(model_of(nodes, {"x0": X}, constants, ["y"]), [X], tmp_path)
    np.testing.assert_allclose(expected[0], made[0], atol=0.05)
    # Not by the weights before they were rounded, and without rounding what flows.
    floating = (number.astype(np.float32) - zero) * scale
    if kind == "MatMulInteger":
        np.testing.assert_allclose(made[0], X @ floating + bias, rtol=1e-4, atol=1e-4)


def test_a_quantised_lstm_goes_both_ways(tmp_path):
    size, wide, steps = 3, 4, 6
    sound = random.normal(size=(steps, 1, wide)).astype(np.float32)
    inner = [random.normal(size=(2, n, 4 * size)).astype(np.float32) for n in (wide, size)]
    numbers = [quantised(one) for one in inner]
    bias = random.normal(size=(2, 8 * size)).astype(np.float32)
    constants = {"w": numbers[0][0], "r": numbers[1][0], "b": bias}
    for name, (_, scale, zero) in zip("wr", numbers, strict=True):
        constants |= {f"{name}s": np.full(2, scale), f"{name}z": np.full(2, zero)}
    names = ["x0", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        names,
        ["y"],
        domain="com.microsoft",
        direction="bidirectional",
        hidden_size=size,
    )
    expected, made = both(model_of([node], {"x0": sound}, constants, ["y"]), [sound], tmp_path)
    assert expected[0].shape == made[0].shape
    np.testing.assert_allclose(expected[0], made[0], atol=0.03)


def test_noise_is_new_every_time(tmp_path):
    model = graph_of("RandomNormalLike", [X], [], {"dtype": 1})
    onnx.save(model, str(tmp_path / "net.onnx"))
    net = TorchNetwork(tmp_path / "net.onnx", "cpu")
    first, second = (net.run(None, {"x0": X})[0] for _ in range(2))
    assert first.shape == X.shape
    assert not np.array_equal(first, second)


def test_what_depends_on_no_input_is_worked_out_once_and_values_are_forgotten(tmp_path):
    nodes = [
        helper.make_node("Add", ["c", "c"], ["two"]),
        helper.make_node("Mul", ["x0", "two"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Add", ["b", "two"], ["y"]),
    ]
    model = model_of(nodes, {"x0": X}, {"c": floats(1)}, ["y"])
    expected, made = both(model, [X], tmp_path)
    np.testing.assert_allclose(expected[0], made[0])
    net = TorchNetwork(tmp_path / "net.onnx", "cpu")
    assert len(net._nodes) == 3
    assert [len(node.done_with) for node in net._nodes] == [1, 1, 1]  # x0, a, b
    assert np.array_equal(net.run(None, {"x0": X})[0], net.run(None, {"x0": X})[0])


def test_what_it_cannot_do_is_said(tmp_path):
    onnx.save(graph_of("Acos", [X], [], {}), str(tmp_path / "net.onnx"))
    with pytest.raises(DragomanError, match=r"'Acos'.*without --device"):
        TorchNetwork(tmp_path / "net.onnx", "cpu")


def test_networks_run_where_they_are_told(tmp_path, monkeypatch):
    onnx.save(graph_of("Neg", [X], [], {}), str(tmp_path / "net.onnx"))
    try:
        run_on("meta")  # any device but the CPU
        assert isinstance(load_network(tmp_path / "net.onnx"), TorchNetwork)
    finally:
        run_on("cpu")
    session = load_network(tmp_path / "net.onnx")
    assert isinstance(session, onnxruntime.InferenceSession)
    assert not session.get_session_options().enable_mem_reuse  # the plan of it takes seconds


def test_kokoro_says_the_same(monkeypatch):
    need("kokoro")
    voice = open_voice("kokoro:am_adam+zf_xiaobei", "en")
    expected = voice.speak("Thank you.")
    net = TorchNetwork(kokoro.get("kokoro") / "model.onnx", "cpu")
    monkeypatch.setattr(kokoro, "_network", lambda folder: net)
    made = voice.speak("Thank you.")
    assert len(made) == pytest.approx(len(expected), rel=0.1)
    # Its phases drift apart, so loudness is compared, 50 ms at a time.
    loud = [np.array([np.abs(p).mean() for p in np.array_split(s, 16)]) for s in (expected, made)]
    assert np.corrcoef(*loud)[0, 1] > 0.9
