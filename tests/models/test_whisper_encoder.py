"""The encoder against CTranslate2's, and what it keeps against what it would make anew."""

from pathlib import Path

import numpy as np
import pytest

from dragoman.models.options import Options
from dragoman.models.whisper import encoder as encoder_module
from dragoman.models.whisper.encoder import Encoded, Plan
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


def known(sound: int, total: int) -> Encoded:
    return Encoded(np.zeros((total, 1), np.float32), {}, {}, sound)


def test_what_is_made_again():
    """Back from where the sound ended, on to behind where it ends now, and what is new."""
    assert Plan.around(None, 30, 50, (10, 5)).parts == [(0, 50)]
    assert Plan.around(known(30, 50), 40, 60, (10, 5)).parts == [(20, 45), (50, 60)]
    assert Plan.around(known(5, 25), 8, 28, (10, 5)).parts == [(0, 13), (25, 28)]
    # More came at once than there was silence behind the sound: there is no gap.
    assert Plan.around(known(30, 50), 90, 110, (10, 5)).parts == [(20, 95), (95, 110)]
    assert Plan.around(known(30, 50), 30, 50, (10, 5)).parts == [(20, 35)]


def test_kept_and_new_states_stand_in_their_order():
    plan = Plan.around(known(30, 50), 40, 60, (10, 5))
    before, now = np.arange(50.0), 100 + np.arange(60.0)
    new = np.concatenate([now[a:b] for a, b in plan.parts])
    merged = plan.merged(before, new, 0)
    expected = np.where((np.arange(60) < 20) | (np.arange(60) >= 45) & (np.arange(60) < 50),
                        np.arange(60), now)  # fmt: skip
    np.testing.assert_array_equal(merged, expected)
    np.testing.assert_array_equal(plan.kept(before, 0), [*range(20), *range(45, 50)])


def test_made_again_in_full_the_window_is_as_if_it_were_new(engine, monkeypatch):
    """With all states in reach, what was kept before changes nothing, whatever is embedded."""
    monkeypatch.setattr(encoder_module, "BEHIND", 1000)
    monkeypatch.setattr(encoder_module, "NEXT", 1000)
    window = mel(120)
    window[:, 100:] = -1.0
    begin = window[:, :100].copy()
    begin[:, 80:] = -1.0
    before = engine.encode([View(begin, 40)])[0]
    again = engine.encode([View(window, 50, before)])[0]
    anew = engine.encode([View(window, 50)])[0]
    np.testing.assert_allclose(again.embedded, anew.embedded, rtol=1e-4, atol=1e-3)
    for name, array in anew.memory.items():
        np.testing.assert_allclose(again.memory[name], array, rtol=1e-3, atol=1e-3)


def test_states_of_old_sound_are_kept_and_new_ones_see_them(engine, monkeypatch):
    """The first states stay as they were; the new ones are those of a net in which the old keys
    and values are the old ones: computed here layer by layer, straight from the weights."""
    monkeypatch.setattr(encoder_module, "BEHIND", 10)
    monkeypatch.setattr(encoder_module, "NEXT", 4)
    window = mel(120)
    before = engine.encode([View(window[:, :100], 40)])[0]
    made = engine.encoder.encode(window, 50, before)
    after = made.finished(engine.decoder.remember(made.states), 50)
    for name, array in before.memory.items():
        np.testing.assert_array_equal(after.memory[name][:, :, :30], array[:, :, :30])
        assert np.abs(after.memory[name][:, :, 30:50] - array[:, :, 30:50]).max() > 1e-3
    places = [i for a, b in made.plan.parts for i in range(a, b)]
    expected = plain_layers(engine, after.embedded, places, before, made.plan)
    np.testing.assert_allclose(made.states, expected, atol=1e-3)


def plain_layers(engine, embedded, places, before, plan) -> np.ndarray:
    """Whisper's encoder by hand, for some positions, with the keys and values of others given."""
    weights = engine.encoder.weights
    get = weights.array
    heads, width = made_whisper.HEADS, made_whisper.WIDTH

    def norm(x, name):
        centred = x - x.mean(1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
        return scaled * get(f"{name}/gamma") + get(f"{name}/beta")

    def linear(x, name):
        return x @ get(f"{name}/weight").T + get(f"{name}/bias")

    def gelu(x):
        from math import erf

        return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))

    kept = [i for i in range(len(embedded)) if i not in places]
    x = embedded[places] + get("encoder/position_encodings/encodings")[places]
    for layer in range(made_whisper.LAYERS):
        name = f"encoder/layer_{layer}"
        made = linear(
            norm(x, f"{name}/self_attention/layer_norm"), f"{name}/self_attention/linear_0"
        )
        query, key, value = np.split(made, 3, axis=1)
        seen = []
        for head in range(heads):
            part = slice(head * width // heads, (head + 1) * width // heads)
            keys = np.concatenate([before.layers[f"keys_{layer}"][0, head, kept], key[:, part]])
            values = np.concatenate(
                [before.layers[f"values_{layer}"][0, head, kept], value[:, part]]
            )
            scores = query[:, part] @ keys.T / np.sqrt(width // heads)
            spread = np.exp(scores - scores.max(1, keepdims=True))
            seen.append(spread / spread.sum(1, keepdims=True) @ values)
        x = x + linear(np.concatenate(seen, 1), f"{name}/self_attention/linear_1")
        inner = gelu(linear(norm(x, f"{name}/ffn/layer_norm"), f"{name}/ffn/linear_0"))
        x = x + linear(inner, f"{name}/ffn/linear_1")
    return norm(x, "encoder/layer_norm")
