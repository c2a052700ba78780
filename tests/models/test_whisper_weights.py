"""Folders written by CTranslate2's converter, in every number format: read as it reads them."""

from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest

from dragoman.models import byte_sums
from dragoman.models.graphs import Graphs
from dragoman.models.options import Options
from dragoman.models.search import Prompt
from dragoman.models.whisper.engine import View, WhisperEngine
from dragoman.models.whisper.graph import Builder, quantized
from dragoman.models.whisper.tokens import Vocabulary
from dragoman.models.whisper.weights import Weights

from . import made_whisper as made

FORMATS = [
    *(None, "float32", "float16", "bfloat16", "int16"),
    *("int8", "int8_float32", "int8_float16", "int8_bfloat16"),
]
START = [made.IDS[name] for name in ("<|startoftranscript|>", "<|de|>", "<|translate|>")]
NO_TIMES = made.IDS["<|notimestamps|>"]
TIMES = range(NO_TIMES, len(made.NAMES))


@pytest.fixture(params=FORMATS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param and "bfloat16" in request.param:
        pytest.importorskip("torch", reason="CTranslate2 writes bfloat16 with torch")
    return made.make(tmp_path / "made", request.param)


def sound(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((made.BANDS, 60)).astype(np.float32)


def test_every_number_format_is_the_same_model(folder: Path, tmp_path: Path):
    plain = Weights(made.make(tmp_path / "plain") / "model.bin")
    weights = Weights(folder / "model.bin")
    for name in ("decoder/embeddings/weight", "decoder/projection/weight",
                 "decoder/layer_1/ffn/linear_0/weight", "decoder/layer_norm/gamma"):  # fmt: skip
        exact = plain.array(name)
        largest = np.abs(exact).max()
        np.testing.assert_allclose(weights.array(name), exact, atol=largest / 128)
        np.testing.assert_array_equal(weights.array(name, [4, 1]), weights.array(name)[[4, 1]])


def test_the_decoder_speaks_as_ctranslate2_does(folder: Path):
    """The same greedy tokens from the same folder, by its own decoder and by ours.

    Random weights are soon undecided between two tokens, and then a rounding error decides: texts
    are compared as far as our decoder is sure. Theirs computes in floats: in bytes it says other
    things on processors that round sums of them (`models/byte_sums.py`).
    """
    import ctranslate2

    theirs = ctranslate2.models.Whisper(str(folder), compute_type="float32")
    ours = WhisperEngine(folder, Vocabulary.load(folder), Options(threads=1))
    compared: list[int] = []
    for seed in range(12):
        encoded = ours.encode([View(sound(seed))])
        states = ours.encoder.encode(sound(seed)).states
        features = ctranslate2.StorageView.from_array(states[None])
        start, said = (*START, NO_TIMES), (seed, 2 * seed + 1)
        expected = theirs.generate(
            features,
            [[*start, *said]],
            beam_size=1,
            max_length=40,
            suppress_blank=False,
            suppress_tokens=[-1, *TIMES],
        )
        spoken = ours.speak(encoded, [Prompt(start, 8, said)], 1)[0]
        sure = len(list(takewhile(lambda value: value > np.log(0.8), spoken.log_probs)))
        assert list(spoken.tokens[:sure]) == expected[0].sequences_ids[0][2:][:sure]
        compared += spoken.tokens[:sure]
    assert len(compared) > 30
    assert len(set(compared)) > 4


@pytest.mark.parametrize("exact_sums", [True, False])
def test_products_with_bytes_are_those_of_plain_arithmetic(tmp_path, monkeypatch, exact_sums):
    """Each row of numbers is brought to bytes by itself, halves to the even one; rows of zeros, and
    a row of which one number is much larger than the rest, too. Whichever way the sums take."""
    if exact_sums and not byte_sums.are_exact():
        pytest.skip("this processor rounds sums of bytes")
    monkeypatch.setattr(byte_sums, "are_exact", lambda: exact_sums)
    weights = Weights(made.make(tmp_path / "net", "int8") / "model.bin")
    name = "encoder/layer_0/ffn/linear_0"
    builder = Builder(weights)
    graph = builder.model({"x": np.float32}, [builder.linear("x", name)])
    x = np.random.default_rng(0).standard_normal((2, 7, made.WIDTH)).astype(np.float32)
    x[0, 0], x[0, 1, 0] = 0.0, 1000.0
    x[0, 2] = np.arange(made.WIDTH) + 0.5
    x[0, 2, -1] = 127.0  # one step is 1: halves are to be rounded
    [found] = Graphs(None, 1).session("linear", lambda: graph).run(None, {"x": x})

    bytes_of, scale = quantized(weights, f"{name}/weight")
    largest = np.abs(x).max(axis=-1, keepdims=True)
    step = np.maximum(largest * np.float32(1 / 127), np.float32(1e-9))
    sums = np.rint(x / step).astype(np.int64) @ bytes_of.astype(np.int64)
    plain = sums.astype(np.float32) * scale * step + weights.array(f"{name}/bias")
    np.testing.assert_allclose(found, plain, rtol=1e-6, atol=1e-6)
