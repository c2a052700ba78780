"""Moonshine's decoder against a straightforward one that is written from its paper's formulas."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.models.graphs import Graphs
from dragoman.models.moonshine.engine import MoonshineRules
from dragoman.models.moonshine.weights import decoder_arrays
from dragoman.models.onnx_weights import OnnxWeights
from dragoman.models.search import Past, Prompt
from dragoman.models.whisper.decoder import Decoder
from dragoman.models.whisper.weights import Weights

from . import made_onnx as made

ROOT = "model.decoder"
HEADS = [(0, 3), (1, 7)]


class PlainMoonshine:
    """The whole text anew for every token; positions turn neighbours in each head together."""

    def __init__(self, parameters: dict[str, np.ndarray]) -> None:
        self.p = {name: np.asarray(value, np.float64) for name, value in parameters.items()}

    def __call__(self, tokens: list[int], states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logits after every token, and where the chosen heads look."""
        p, looks = self.p, []
        x = p[f"{ROOT}.embed_tokens.weight"][tokens]
        causal = np.triu(np.full((len(tokens), len(tokens)), -np.inf), 1)
        for number in range(made.MOONSHINE_LAYERS):
            name = f"{ROOT}.layers.{number}"
            y = self.norm(x, f"{name}.input_layernorm")
            seen, _ = self.attend(y, y, f"{name}.self_attn", causal, turns=True)
            x = x + seen
            y = self.norm(x, f"{name}.post_attention_layernorm")
            seen, spread = self.attend(y, states, f"{name}.encoder_attn", 0.0, turns=False)
            x = x + seen
            looks += [spread[head] for at, head in HEADS if at == number]
            y = self.norm(x, f"{name}.final_layernorm")
            hidden, gate = np.split(self.linear(y, f"{name}.mlp.up_proj"), 2, axis=1)
            x = x + self.linear(hidden * gate / (1 + np.exp(-gate)), f"{name}.mlp.down_proj")
        x = self.norm(x, f"{ROOT}.norm")
        return x @ p[f"{ROOT}.embed_tokens.weight"].T, np.mean(looks, axis=0)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return scaled * self.p[f"{name}.weight"]

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        """With each row of x brought to 255 steps."""
        step = np.abs(x).max(axis=1, keepdims=True) / 127
        product = np.rint(x / step) * step @ self.p[f"{name}.weight"].T
        return product + self.p.get(f"{name}.bias", 0.0)

    def attend(self, x, memory, name: str, mask, *, turns: bool) -> tuple[np.ndarray, list]:
        q, k, v = (self.linear(of, f"{name}.{part}_proj")
                   for of, part in ((x, "q"), (memory, "k"), (memory, "v")))  # fmt: skip
        seen, spreads = [], []
        for head in range(made.MOONSHINE_HEADS):
            part = slice(head * made.HEAD, (head + 1) * made.HEAD)
            query, key = (
                (turned(q[:, part]), turned(k[:, part])) if turns else (q[:, part], k[:, part])
            )
            scores = query @ key.T / np.sqrt(made.HEAD) + mask
            spread = np.exp(scores - scores.max(axis=1, keepdims=True))
            spread /= spread.sum(axis=1, keepdims=True)
            spreads.append(spread)
            seen.append(spread @ v[:, part])
        return self.linear(np.concatenate(seen, axis=1), f"{name}.dense"), spreads


def turned(x: np.ndarray) -> np.ndarray:
    """Each pair of neighbours as a complex number, turned by its position and frequency."""
    made_of = x.copy()
    for pair in range(made.TURNING // 2):
        angle = np.arange(len(x)) * 10_000.0 ** (-2 * pair / made.TURNING)
        number = (x[:, 2 * pair] + 1j * x[:, 2 * pair + 1]) * np.exp(1j * angle)
        made_of[:, 2 * pair], made_of[:, 2 * pair + 1] = number.real, number.imag
    return made_of


def states(count: int) -> np.ndarray:
    random = np.random.default_rng(count)
    return random.standard_normal((count, made.MOONSHINE_WIDTH)).astype(np.float32)


@pytest.fixture(scope="module", params=[np.uint8, np.int8, None], ids=["uint8", "int8", "float"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("moonshine") / "decoder_model_merged.onnx"
    plain = PlainMoonshine(made.moonshine_decoder(path, request.param))
    rules = MoonshineRules(made.WORDS, end=2, no_speech=2, never=[0, 1, 2], not_first=[])
    weights = Weights(path, decoder_arrays(path))
    return plain, Decoder(weights, rules, HEADS, Graphs(None, 1))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    path = tmp_path_factory.mktemp("moonshine") / "decoder_model_merged.onnx"
    made.moonshine_decoder(path, None)
    rules = MoonshineRules(made.WORDS, end=2, no_speech=2, never=[0, 1], not_first=[])
    return Decoder(Weights(path, decoder_arrays(path)), rules, HEADS, Graphs(None, 1), exact=True)


@pytest.mark.parametrize("said", [(), (5, 6, 7, 30)])
def test_it_says_what_the_plain_decoder_says(both, said):
    """Weights are rounded to bytes, so probabilities differ a little; a near tie may be broken
    otherwise, and then the texts part."""
    plain, decoder = both
    compared = 0
    for count in (7, 12, 20, 33):
        found = decoder.speak([states(count)], [Prompt((1,), 6, said)], 1)[0]
        tokens: list[int] = []
        for token, log_prob, look in zip(found.tokens, found.log_probs, found.looks, strict=True):
            logits, looks = plain([1, *said, *tokens], states(count))
            allowed = logits[-1].copy()
            allowed[[0, 1, 2]] = -np.inf
            scores = allowed - allowed.max() - np.log(np.exp(allowed - allowed.max()).sum())
            assert log_prob == pytest.approx(scores[token], abs=0.1)
            np.testing.assert_allclose(look, looks[-1], atol=0.02)
            if token != int(scores.argmax()):
                break
            tokens.append(token)
            compared += 1
    assert compared > 12


text = st.lists(st.integers(3, made.WORDS - 1), max_size=9).map(tuple)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(data=st.data())
def test_what_was_computed_before_is_the_same_as_computed_again(decoder, data):
    """Texts of which more or less is known, with or without a guess, side by side: what each goes
    on with is what it would alone, of which nothing is known."""
    counts = data.draw(st.lists(st.integers(3, 30), min_size=1, max_size=3))
    memories = [decoder.remember(states(count)) for count in counts]
    said = [data.draw(text, label="said") for _ in counts]
    before = [data.draw(st.integers(0, len(one)), label="read before") for one in said]
    drafted = [
        Prompt((1,), 4, one[:known], guess=one[known:])
        for one, known in zip(said, before, strict=True)
    ]
    pasts = [
        one.past if data.draw(st.booleans(), label="kept") else Past()
        for one in decoder.go_on(memories, drafted, pasts=[Past()] * len(counts))
    ]
    prompts = [Prompt((1,), 4, one, guess=data.draw(text)[:3]) for one in said]
    together = decoder.go_on(memories, prompts, pasts=pasts)
    for memory, prompt, one in zip(memories, prompts, together, strict=True):
        alone = decoder.go_on([memory], [prompt])[0]
        assert one.tokens == alone.tokens
        np.testing.assert_allclose(one.log_probs, alone.log_probs, atol=1e-4)
        for look, expected in zip(one.looks, alone.looks, strict=True):
            np.testing.assert_allclose(look[: len(expected)], expected, atol=1e-5)
        assert one.past.tokens == (*prompt.known, *prompt.guess)


def test_only_what_is_new_is_read(decoder, monkeypatch):
    """And of two prompts as much as the one that is known less of needs."""
    widths = []
    read = decoder.read

    def counted(tape, texts, rows, kinds):
        widths.append([len(text) for text in texts])
        return read(tape, texts, rows, kinds)

    monkeypatch.setattr(decoder, "read", counted)
    memory = decoder.remember(states(12))
    known = decoder.go_on([memory], [Prompt((1,), 1, (5, 6, 7, 8))], pasts=[Past()])[0].past
    decoder.go_on([memory], [Prompt((1,), 1, (5, 6, 7, 8, 9))], pasts=[known])
    decoder.go_on([memory], [Prompt((1,), 1, (5, 6, 7, 8))], pasts=[known])  # the last is read
    decoder.go_on([memory], [Prompt((1,), 1, (5, 9, 7, 8))], pasts=[known])  # another text
    prompts = [Prompt((1,), 1, (5, 6, 7, 8, 9)), Prompt((1,), 1, (5, 6))]
    decoder.go_on([memory, memory], prompts, pasts=[known, Past()])
    assert widths == [[5], [1], [1], [3], [3, 3]]


def held(array: np.ndarray) -> int:
    """Bytes that stay in memory for an array's sake."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.nbytes


def test_what_is_kept_of_a_text_is_nothing_of_the_others(decoder):
    memories = [decoder.remember(states(count)) for count in (5, 9, 7)]
    prompts = [Prompt((1,), 4, (5, 6, 7, 8)[:said]) for said in (4, 2, 3)]
    for found in decoder.go_on(memories, prompts, pasts=[Past()] * 3):
        assert all(held(array) == array.nbytes for array in found.past.cache.values())


def test_an_ort_file_holds_the_same_weights(tmp_path: Path):
    """Saved by onnxruntime in its own format: every parameter is found under the same name."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    weight = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "onnx::MatMul_1"], ["y"], "/layers.0/fc1/MatMul")
    graph = helper.make_graph(
        [node],
        "made",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(weight, "onnx::MatMul_1")],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()
    (tmp_path / "net.onnx").write_bytes(model)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(tmp_path / "net.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    for name in ("net.onnx", "net.ort"):
        matrix = OnnxWeights(tmp_path / name).matrix("layers.0.fc1")
        close = np.abs(weight).max() / 127
        np.testing.assert_allclose(matrix.steps / matrix.scale[:, None], weight.T, atol=close)


def test_a_number_that_is_added_is_no_step(tmp_path: Path):
    """Files of ONNX Runtime may keep a matrix as steps * scale + zero."""
    from onnx import helper, numpy_helper

    steps = np.array([[-128, 127], [5, 6]], np.int8)
    parts = {"w_quantized": steps, "w_scale": np.float32([0.5]), "w_zero_point": np.float32([3.0])}
    constants = [numpy_helper.from_array(value, name) for name, value in parts.items()]
    graph = helper.make_graph([], "made", [], [], constants)
    (tmp_path / "net.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    expected = steps * 0.5 + 3.0
    file = OnnxWeights(tmp_path / "net.onnx")
    np.testing.assert_allclose(file.array("w"), expected, rtol=1e-6)
    table = file.table("w")
    np.testing.assert_allclose(
        table.steps / table.scale[:, None], expected, atol=np.abs(expected).max() / 127
    )
