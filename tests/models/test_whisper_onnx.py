"""Whisper in ONNX, as a folder in CTranslate2's format: the same weights, and the same text."""

import json
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.models.kind import kind_of
from dragoman.models.load import load_model
from dragoman.models.onnx_weights import Matrix
from dragoman.models.options import Options
from dragoman.models.search import Prompt
from dragoman.models.whisper.engine import View, WhisperEngine
from dragoman.models.whisper.from_onnx import convert, in_ctranslate2
from dragoman.models.whisper.mel import LogMel
from dragoman.models.whisper.tokens import Vocabulary
from dragoman.models.whisper.weights import Weights
from dragoman.store import get

from . import made_onnx
from . import made_whisper as made

NAMES = list(made.NAMES)
LAYER = "decoder/layer_1"
JOINED = {  # ours: theirs
    "encoder/layer_0/self_attention/linear_0": [f"layers.0.self_attn.{p}_proj" for p in "qkv"],
    "encoder/layer_1/ffn/linear_1": ["layers.1.fc2"],
    f"{LAYER}/attention/linear_0": ["model.decoder.layers.1.encoder_attn.q_proj"],
    f"{LAYER}/attention/linear_1": [f"model.decoder.layers.1.encoder_attn.{p}_proj" for p in "kv"],
    f"{LAYER}/attention/linear_2": ["model.decoder.layers.1.encoder_attn.out_proj"],
    f"{LAYER}/self_attention/linear_1": ["model.decoder.layers.1.self_attn.out_proj"],
    f"{LAYER}/ffn/linear_0": ["model.decoder.layers.1.fc1"],
}
NORMS = {
    "encoder/layer_norm": "layer_norm",
    f"{LAYER}/ffn/layer_norm": "model.decoder.layers.1.final_layer_norm",
    f"{LAYER}/attention/layer_norm": "model.decoder.layers.1.encoder_attn_layer_norm",
    f"{LAYER}/self_attention/layer_norm": "model.decoder.layers.1.self_attn_layer_norm",
}


@pytest.mark.parametrize("kind", [np.uint8, np.int8, None])
def test_weights_are_what_they_were(tmp_path: Path, kind):
    theirs = made_onnx.whisper(tmp_path / "theirs", NAMES, kind)
    (tmp_path / "ours").mkdir()
    convert(tmp_path / "theirs", tmp_path / "ours")
    ours = Weights(tmp_path / "ours" / "model.bin")
    for name, modules in JOINED.items():
        matrix = np.concatenate([theirs[f"{module}.weight"] for module in modules])
        rows = np.abs(matrix).max(axis=1, keepdims=True)
        assert (np.abs(ours.array(f"{name}/weight") - matrix) <= rows / 127 / 2 * 1.01).all()
        bias = [theirs.get(f"{m}.bias", np.zeros(made_onnx.WIDTH, np.float32)) for m in modules]
        np.testing.assert_array_equal(ours.array(f"{name}/bias"), np.concatenate(bias))
    for name, module in NORMS.items():
        np.testing.assert_array_equal(ours.array(f"{name}/gamma"), theirs[f"{module}.weight"])
        np.testing.assert_array_equal(ours.array(f"{name}/beta"), theirs[f"{module}.bias"])
    np.testing.assert_allclose(
        ours.array("encoder/conv1/weight"), theirs["conv1.weight"], atol=1e-6
    )
    table = theirs["model.decoder.embed_tokens.weight"]
    for name in ("embeddings", "projection"):
        np.testing.assert_allclose(
            ours.array(f"decoder/{name}/weight"), table, atol=np.abs(table).max() / 127 / 2 * 1.01
        )


def test_bytes_that_fit_stay_as_they_are():
    """Only rows that do not fit are rounded again; numbers that are no steps use all bytes."""
    whole = Matrix.of(np.array([[-127, 5], [3, 4], [130, -65]], np.int16), 0.5)
    assert whole.steps.tolist() == [[-127, 5], [3, 4], [127, -64]]
    np.testing.assert_allclose(whole.scale, [2.0, 2.0, 2.0 * 127 / 130])
    real = Matrix.of(np.array([[0.5, -0.25], [0.0, 0.0]], np.float32), 1.0)
    assert real.steps.tolist() == [[127, -64], [0, 0]]
    assert real.scale[0] == pytest.approx(254.0)


def test_the_vocabulary_and_the_settings_come_along(tmp_path: Path):
    made_onnx.whisper(tmp_path / "theirs", NAMES, np.uint8)
    (tmp_path / "ours").mkdir()
    convert(tmp_path / "theirs", tmp_path / "ours")
    assert json.loads((tmp_path / "ours" / "vocabulary.json").read_text()) == NAMES
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert config["suppress_ids"] == [3]
    assert config["suppress_ids_begin"] == [5]
    assert config["alignment_heads"] == [[1, 1]]
    assert config["lang_ids"] == [made.IDS["<|en|>"], made.IDS["<|de|>"]]


def test_such_a_folder_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    made_onnx.whisper(tmp_path / "theirs", NAMES, np.uint8)
    assert kind_of(tmp_path / "theirs") == "whisper-onnx"
    model = load_model(str(tmp_path / "theirs"), threads=1)
    assert model.hears == made.LANGUAGES
    folder = in_ctranslate2(tmp_path / "theirs")
    assert folder.is_relative_to(tmp_path / "home" / "prepared" / "whisper")
    stamp = (folder / "model.bin").stat().st_mtime_ns
    load_model(str(tmp_path / "theirs"), threads=1)
    assert (folder / "model.bin").stat().st_mtime_ns == stamp  # made once


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("onnx/decoder_model_merged_quantized.onnx", "nonsense", "as an ONNX model"),
        ("config.json", "{}", "does not describe a Whisper in ONNX: .*`encoder_layers`"),
        ("config.json", "null", "does not describe a Whisper in ONNX"),
        ("tokenizer.json", "{}", "does not describe a tokenizer"),
        ("generation_config.json", "{", "is damaged"),
        ("generation_config.json", '{"suppress_tokens": 5}', "does not describe how a Whisper"),
        ("onnx/encoder_model_quantized.onnx", "", "has no weight"),
    ],
)
def test_a_damaged_folder_is_a_sentence(tmp_path: Path, file, text, sentence):
    made_onnx.whisper(tmp_path / "theirs", NAMES, np.uint8)
    (tmp_path / "theirs" / file).write_text(text)
    (tmp_path / "ours").mkdir()
    with pytest.raises(DragomanError, match=sentence):
        convert(tmp_path / "theirs", tmp_path / "ours")


@pytest.mark.weights
def test_whisper_tiny_hears_what_its_onnx_hears(tmp_path: Path):
    """Real weights and real speech: nearly the text that onnxruntime finds in the original. It
    rounds all of a layer's input with one step, we each state's, so the numbers differ a little."""
    import onnxruntime

    try:
        original, clip = get("whisper-tiny-onnx"), get("demo-de") / "proverb.wav"
    except DragomanError as error:
        pytest.skip(f"no weights: {error}")
    convert(original, tmp_path)
    vocabulary = Vocabulary.load(tmp_path)
    engine = WhisperEngine(tmp_path, vocabulary, Options(threads=2))
    mel = LogMel(80)
    mel.hear(speech(clip))
    window = mel.window(3000 - mel.frames)
    encoder = onnxruntime.InferenceSession(original / "onnx/encoder_model_quantized.onnx")
    expected = encoder.run(["last_hidden_state"], {"input_features": window[None]})[0][0]
    encoded = engine.encode([View(window)])[0]
    states = engine.encoder.encode(window).states
    product = (states * expected).sum() / np.linalg.norm(states) / np.linalg.norm(expected)
    assert product > 0.9
    language, task = vocabulary.languages["de"], vocabulary.transcribe
    start = (vocabulary.start, language, task, vocabulary.no_times)
    decoder = onnxruntime.InferenceSession(original / "onnx/decoder_model_merged_quantized.onnx")
    theirs = vocabulary.text(greedy(decoder, expected, start, original, vocabulary))
    ours = vocabulary.text(engine.speak([encoded], [Prompt(start, 60)], 1)[0].tokens)
    assert len(theirs) > 20
    assert SequenceMatcher(None, ours, theirs).ratio() > 0.7, (ours, theirs)


def speech(path: Path) -> np.ndarray:
    """The first seconds of a recording, at 16 kHz."""
    import soundfile
    import soxr

    sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
    return soxr.resample(sound[: 25 * rate, 0], rate, 16000)


def greedy(decoder, states, start, folder: Path, vocabulary: Vocabulary) -> tuple[int, ...]:
    never = json.loads((folder / "generation_config.json").read_text())["suppress_tokens"]
    inputs = {one.name: one for one in decoder.get_inputs()}
    feed = {n: np.zeros((1, i.shape[1], 1, i.shape[3]), np.float32) for n, i in inputs.items()
            if n.startswith("past")}  # fmt: skip
    tokens: list[int] = []
    while len(tokens) < 60:
        ids = np.array([[*start, *tokens]])
        feed |= {"input_ids": ids, "encoder_hidden_states": states[None]}
        logits = decoder.run(["logits"], feed | {"use_cache_branch": np.array([False])})[0][0, -1]
        logits[[*never, *vocabulary.times]] = -np.inf
        token = int(logits.argmax())
        if token == vocabulary.end:
            break
        tokens.append(token)
    return tuple(tokens)
