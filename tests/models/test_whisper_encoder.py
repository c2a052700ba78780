"""The encoder against CTranslate2's, and what it keeps against what it would make anew."""

import shutil
from math import erf
from pathlib import Path

import numpy as np
import pytest

from dragoman.models.graphs import Graphs
from dragoman.models.options import Options
from dragoman.models.search import Prompt
from dragoman.models.whisper import encoder as encoder_module
from dragoman.models.whisper.decoder import Decoder
from dragoman.models.whisper.encoder import LAST, NEAR, silent
from dragoman.models.whisper.engine import View, WhisperEngine
from dragoman.models.whisper.tokens import Vocabulary

from . import made_whisper


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_whisper.make(tmp_path_factory.mktemp("whisper"))


def engine_of(folder: Path, compute="float32") -> WhisperEngine:
    return WhisperEngine(folder, Vocabulary.load(folder), Options(threads=1, compute=compute))


@pytest.fixture(scope="module")
def engine(folder: Path) -> WhisperEngine:
    return engine_of(folder)


def mel(frames: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.standard_normal((made_whisper.BANDS, frames)).astype(np.float32)


@pytest.mark.parametrize(("compute", "near"), [("float32", 1e-4), ("int8", 0.06)])
def test_the_states_are_those_of_ctranslate2(folder, compute, near):
    import ctranslate2

    theirs = ctranslate2.models.Whisper(str(folder), compute_type=compute, intra_threads=1)
    window = mel(90)
    view = ctranslate2.StorageView.from_array(window[None])
    expected = np.array(theirs.encode(view, to_cpu=True))[0]
    states = engine_of(folder, compute).encoder.encode(window).states
    assert np.abs(states - expected).mean() < near * np.abs(expected).mean()


def test_graphs_that_are_kept_are_those_of_the_same_numbers_and_heads(
    folder, tmp_path, monkeypatch
):
    """Whatever an engine of other numbers has kept, each network is as if nothing were kept."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    stored = tmp_path / "models" / "made"
    shutil.copytree(folder, stored)
    window = mel(60)

    def outputs(engine: WhisperEngine) -> list[np.ndarray]:
        states = engine.encoder.encode(window).states
        memory = engine.decoder.remember(np.ones_like(states))
        looks = engine.decoder.speak([np.ones_like(states)], [Prompt((1,), 3)])[0].looks
        first = engine.decoder.first(memory, 1)
        return [states, np.concatenate([*memory.values()]), first, np.array(looks)]

    for compute in ("int8", "float32", "int8"):
        kept = outputs(engine_of(stored, compute))
        for one, plain in zip(kept, outputs(engine_of(folder, compute)), strict=True):
            np.testing.assert_allclose(one, plain, atol=1e-5)
    assert (
        len(list((tmp_path / "prepared" / "graphs").rglob("*.ort"))) == 7
    )  # one is the same in both
    engine = engine_of(stored)
    looks = []
    for heads in ([(0, 0)], [(0, 1)]):
        decoder = Decoder(
            engine.encoder.weights, engine.decoder.rules, heads, Graphs(stored, 1), exact=True
        )
        looks.append(decoder.speak([kept[0]], [Prompt((1,), 1)])[0].looks[0])
    assert np.abs(looks[0] - looks[1]).max() > 1e-4


def test_states_of_silence_stand_for_others():
    """All next to the sound and at the end; between, one for every few, in their middle."""
    places, counts = silent(20, 51, 4)
    assert places.tolist() == [*range(20, 36), 37, 41, 45, *range(47, 51)]
    assert counts.tolist() == [1] * 16 + [4, 4, 3] + [1] * 4
    assert silent(20, 38, 4)[0].tolist() == list(range(20, 38))
    assert silent(20, 30, 4)[0].tolist() == list(range(20, 30))
    places, counts = silent(20, 50, 1)
    assert places.tolist() == list(range(20, 50))
    assert counts.tolist() == [1] * 30
    assert silent(20, 20, 4)[0].size == 0


def window_of(sound: int, silence: int, seed: int = 0) -> np.ndarray:
    """States of sound, then of silence, as mel frames."""
    window = mel(2 * (sound + silence), seed)
    window[:, 2 * sound :] = -1.0
    return window


def test_a_state_counts_as_often_as_those_it_stands_for(engine, monkeypatch):
    """Without positions, states of silence are equal: a few with their weight are all of them,
    if the end of the window, beyond which the convolutions see something else, is among them."""
    positions = engine.encoder._positions
    monkeypatch.setattr(engine.encoder, "_positions", np.zeros_like(positions))
    window = window_of(30, 70)
    some = engine.encoder.encode(window, 30)
    every = engine.encoder.encode(window, 30, plain=True)
    assert len(some.states) == 30 + NEAR + 4 + LAST  # 50 between, one for each 16 of them
    assert len(every.states) == 100
    np.testing.assert_allclose(some.states[:30], every.states[:30], atol=1e-3)
    np.testing.assert_allclose(some.states[-LAST:], every.states[-LAST:], atol=1e-3)
    shorter = engine.encoder.encode(window[:, :108], 30, plain=True).states[:30]
    assert np.abs(shorter - every.states[:30]).mean() > 0.005


def test_plain_is_the_whole_window(engine):
    window = window_of(40, 20)
    plain = engine.encoder.encode(window, 40, plain=True)
    np.testing.assert_allclose(plain.states, engine.encoder.encode(window).states, atol=1e-3)
    assert plain.finished({}, None).sound == 40
    assert not plain.weight.any()


@pytest.mark.parametrize(("renew", "plain"), [(False, False), (True, False), (True, True)])
def test_made_again_in_full_the_window_is_as_if_it_were_new(engine, renew, plain):
    """With all states in reach, or all made again, what was made before changes nothing."""
    window = window_of(80 if renew else 50, 40)
    begin = np.concatenate([window[:, :80], np.full((made_whisper.BANDS, 80), -1.0)], axis=1)
    before = engine.encode([View(begin.astype(np.float32), 40)])[0]
    sound = window.shape[1] // 2 - 40
    again = engine.encode([View(window, sound, before, renew, plain)])[0]
    anew = engine.encode([View(window, sound, plain=plain)])[0]
    np.testing.assert_allclose(again.embedded, anew.embedded, rtol=1e-4, atol=1e-3)
    for one, other in ((again.memory, anew.memory), (again.layers, anew.layers)):
        for name, array in other.items():
            np.testing.assert_allclose(one[name], array, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("renew", "reach"), [(False, "BEHIND"), (True, "FAR")])
def test_states_of_old_sound_are_kept_and_new_ones_see_them(engine, monkeypatch, renew, reach):
    """The first states stay as they were; the new ones are those of a net in which the old keys
    and values are the old ones: computed here layer by layer, straight from the weights. A window
    that is renewed keeps what is older still."""
    monkeypatch.setattr(encoder_module, reach, 10)
    window = window_of(50, 40)
    before = engine.encode([View(window[:, :100], 40)])[0]
    made = engine.encoder.encode(window, 50, before, renew=renew)
    after = made.finished(engine.decoder.remember(made.states), before)
    assert made.begin == 30
    for name, array in before.memory.items():
        np.testing.assert_array_equal(after.memory[name][:, :, :30], array[:, :, :30])
        assert np.abs(after.memory[name][:, :, 30:40] - array[:, :, 30:40]).max() > 1e-3
    silence, counts = silent(50, 90, encoder_module.EVERY)
    embedded = engine.encoder.encode(window, plain=True).embedded
    places = [*range(30, 50), *silence]
    x = embedded[places]
    counts = [1] * 50 + counts.tolist()
    expected = plain_layers(engine, x, places, before, counts)
    np.testing.assert_allclose(made.states, expected, atol=2e-3)
    assert after.sound == 50
    assert after.layers["keys_0"].shape[2] == 50
    np.testing.assert_allclose(np.exp(after.weight), counts)


def plain_layers(engine, embedded, places, before, counts) -> np.ndarray:
    """Whisper's encoder by hand, for some positions; keys and values of 30 others are given."""
    get = engine.encoder.weights.array
    heads, width = made_whisper.HEADS, made_whisper.WIDTH

    def norm(x, name):
        centred = x - x.mean(1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
        return scaled * get(f"{name}/gamma") + get(f"{name}/beta")

    def linear(x, name):
        return x @ get(f"{name}/weight").T + get(f"{name}/bias")

    def gelu(x):
        return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))

    x = embedded + get("encoder/position_encodings/encodings")[places]
    for layer in range(made_whisper.LAYERS):
        name = f"encoder/layer_{layer}"
        normed = norm(x, f"{name}/self_attention/layer_norm")
        query, key, value = np.split(linear(normed, f"{name}/self_attention/linear_0"), 3, axis=1)
        seen = []
        for head in range(heads):
            part = slice(head * width // heads, (head + 1) * width // heads)
            old = [before.layers[f"{kind}_{layer}"][0, head, :30] for kind in ("keys", "values")]
            keys, values = (
                np.concatenate([old[0], key[:, part]]),
                np.concatenate([old[1], value[:, part]]),
            )
            scores = query[:, part] @ keys.T / np.sqrt(width // heads)
            spread = np.exp(scores - scores.max(1, keepdims=True)) * counts
            seen.append(spread / spread.sum(1, keepdims=True) @ values)
        x = x + linear(np.concatenate(seen, 1), f"{name}/self_attention/linear_1")
        inner = gelu(linear(norm(x, f"{name}/ffn/layer_norm"), f"{name}/ffn/linear_0"))
        x = x + linear(inner, f"{name}/ffn/linear_1")
    return norm(x, "encoder/layer_norm")
