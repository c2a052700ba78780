"""Moonshine's encoder in steps, against a straightforward one written from its formulas."""

from math import erf
from pathlib import Path

import numpy as np
import pytest

from dragoman.models.graphs import Graphs
from dragoman.models.moonshine import encoder as module
from dragoman.models.moonshine.encoder import BEHIND, OPEN, STATE, Encoded, Encoder, Level, Pace
from dragoman.models.moonshine.engine import MoonshineRules
from dragoman.models.moonshine.weights import moonshine_weights
from dragoman.models.search import Prompt
from dragoman.models.whisper.decoder import Decoder

from . import made_onnx as made
from .test_moonshine_decoder import ROOT, held, turned

KEPT = Level(0.01, 0.3, 10**15)


class PlainEncoder:
    """The whole sound at once; `level` is the mean and the mean square that norms it."""

    def __init__(self, parameters: dict[str, np.ndarray]) -> None:
        self.p = {name: np.asarray(value, np.float64) for name, value in parameters.items()}
        for name, value in self.p.items():
            if value.ndim == 2 and any(part in name for part in ("_attn.", ".mlp.")):
                step = np.abs(value).max(axis=1, keepdims=True) / 127  # matrices become bytes
                self.p[name] = np.rint(value / step) * step

    def frames(self, sound: np.ndarray, level: tuple[float, float] | None = None) -> np.ndarray:
        y = np.tanh(self.convolved(sound[:, None], 1, 64))
        mean, square = level or (y.mean(), (y**2).mean())
        y = (y - mean) / np.sqrt(square - mean**2 + 1e-5)
        y = y * self.p["onnx::Mul_7"].T + self.p["onnx::Add_7"].T
        return gelu(self.convolved(gelu(self.convolved(y, 2, 3)), 3, 2))

    def convolved(self, x: np.ndarray, number: int, stride: int) -> np.ndarray:
        weight = self.p[f"conv{number}.weight"]  # [out, in, size]
        begins = range(0, len(x) - weight.shape[2] + 1, stride)
        seen = np.stack([x[at : at + weight.shape[2]] for at in begins])  # [n, size, in]
        return np.einsum("nsi,ois->no", seen, weight) + self.p.get(f"conv{number}.bias", 0.0)

    def states(self, x: np.ndarray, past: list | None = None, place: int = 0) -> tuple:
        """States, and every layer's keys (turned) and values; `past` are such of earlier ones."""
        kept = []
        for number in range(made.MOONSHINE_LAYERS):
            name = f"layers.{number}"
            y = self.norm(x, f"{name}.input_layernorm")
            q, k, v = (self.linear(y, f"{name}.self_attn.{part}_proj") for part in "qkv")
            heads = [slice(at, at + made.HEAD) for at in range(0, made.MOONSHINE_WIDTH, made.HEAD)]
            # `turned` counts from zero: earlier places are filled up, and thrown away again.
            q, k = (
                np.hstack([turned(np.pad(z[:, h], ((place, 0), (0, 0))))[place:] for h in heads])
                for z in (q, k)
            )
            kept.append((k, v))
            if past is not None:
                k, v = (np.concatenate(both) for both in zip(past[number], (k, v), strict=True))
            seen = [softmax(q[:, h] @ k[:, h].T / np.sqrt(made.HEAD)) @ v[:, h] for h in heads]
            x = x + self.linear(np.hstack(seen), f"{name}.self_attn.dense")
            y = self.norm(x, f"{name}.post_attention_layernorm")
            x = x + self.linear(gelu(self.linear(y, f"{name}.mlp.fc1")), f"{name}.mlp.fc2")
        return self.norm(x, "layer_norm"), kept

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return scaled * self.p[f"{name}.weight"]

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.p[f"{name}.weight"].T + self.p.get(f"{name}.bias", 0.0)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2


def softmax(x: np.ndarray) -> np.ndarray:
    spread = np.exp(x - x.max(axis=1, keepdims=True))
    return spread / spread.sum(axis=1, keepdims=True)


def sound(seconds: float, seed: int = 0) -> np.ndarray:
    """Tones of a tenth of a second, loud and quiet ones."""
    random = np.random.default_rng(seed)
    count = int(seconds * 10) + 1
    pitch, level = (np.repeat(random.uniform(*of, count), 1600) for of in ((0.01, 0.5), (0.02, 1)))
    return (level * np.sin(np.cumsum(pitch)))[: int(seconds * 16_000)].astype(np.float32)


def loaded(
    folder: Path, *, exact: bool, pace: Pace | None = None
) -> tuple[PlainEncoder, Encoder, Decoder]:
    paths = folder / "encoder_model.onnx", folder / "decoder_model_merged.onnx"
    parameters = made.moonshine_encoder(paths[0], None) | made.moonshine_decoder(paths[1], None)
    weights, graphs = moonshine_weights(*paths), Graphs(None, 1)
    rules = MoonshineRules(made.WORDS, end=2, no_speech=2, never=[0, 1, 2], not_first=[])
    decoder = Decoder(weights, rules, [(0, 3), (1, 7)], graphs, exact=exact)
    encoder = Encoder(weights, graphs, decoder.remember, pace=pace, exact=exact)
    return PlainEncoder(parameters), encoder, decoder


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory):
    return loaded(tmp_path_factory.mktemp("moonshine"), exact=True)


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Encoded:
    """A window before which so much was heard that nothing new changes its level."""
    monkeypatch.setattr(module, "LONG", 10**18)
    return Encoded(level=KEPT)


def keys(plain: PlainEncoder, states: np.ndarray) -> np.ndarray:
    """What the last layer of the decoder reads, [states, width]."""
    return states @ plain.p[f"{ROOT}.layers.1.encoder_attn.k_proj.weight"].T


def seen(window: Encoded) -> np.ndarray:
    made_of = window.memory["memory_keys_1"][0]  # [heads, states, size]
    return made_of.transpose(1, 0, 2).reshape(len(window), -1)


def close(one: np.ndarray, other: np.ndarray) -> None:
    np.testing.assert_allclose(one, other, atol=1e-3)


def in_steps(encoder: Encoder, samples: np.ndarray, step: int, window: Encoded) -> Encoded:
    for end in range(step, len(samples) + step, step):
        window = encoder.encode([window], [samples[len(window) * STATE : end]])[0]
    return window


def test_at_once_it_is_the_plain_encoder(both):
    plain, encoder, _ = both
    for seconds in (0.3, 2.0):
        window = encoder.encode([Encoded()], [sound(seconds)])[0]
        count = (len(sound(seconds)) - BEHIND) // STATE
        states, _ = plain.states(plain.frames(sound(seconds)[: count * STATE + BEHIND]))
        assert len(window) == len(states) == count
        close(seen(window), keys(plain, states))


@pytest.mark.parametrize("exact_sums", [True, False])
def test_in_bytes_it_is_nearly_the_same_and_in_floats_where_bytes_are_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact_sums: bool
):
    monkeypatch.setattr(module, "are_exact", lambda: exact_sums)
    plain, encoder, _ = loaded(tmp_path, exact=False)
    expected, _ = plain.states(plain.frames(sound(2.0)))
    heard: list[np.ndarray] = []
    monkeypatch.setattr(encoder, "_remember", lambda states: heard.append(states) or {})
    encoder.encode([Encoded()], [sound(2.0)])
    assert 0 < np.abs(heard[0] - expected).mean() < (0.03 if exact_sums else 1e-5)


@pytest.mark.parametrize("step", [3000, 8000, 16_001])
def test_in_steps_that_stay_open_it_is_the_same(tmp_path, step, steady):
    _, encoder, _ = loaded(tmp_path, exact=True, pace=Pace(ahead=10**6))
    samples = sound(3.0)
    window = in_steps(encoder, samples, step, steady)
    whole = encoder.encode([steady], [samples])[0]
    assert window.final == 0
    assert len(window) == len(whole)
    np.testing.assert_allclose(seen(window), seen(whole), atol=1e-3)


def test_newer_states_look_at_kept_keys_and_values(both, steady):
    """Two steps by hand: of the first, all but the newest second is final."""
    plain, encoder, _ = both
    samples = sound(3.0)
    level = (KEPT.mean, KEPT.square)
    window = encoder.encode([steady], [samples[:32_000]])[0]
    first = len(window)
    assert window.final == first - OPEN > 20
    window = encoder.encode([window], [samples[first * STATE :]])[0]
    frames, final = plain.frames(samples, level), first - OPEN
    before, kept = plain.states(frames[:first])
    past = [(k[:final], v[:final]) for k, v in kept]
    after, _ = plain.states(frames[final:], past, final)
    close(seen(window), keys(plain, np.concatenate([before[:final], after])))
    alone, _ = plain.states(frames[final:])
    assert np.abs(seen(window)[final:] - keys(plain, alone)).max() > 0.02  # it did look back


def chunk_by_chunk(plain: PlainEncoder, frames: np.ndarray, pace: Pace) -> np.ndarray:
    """Every chunk looks at what is kept of those before it, at itself, and ahead."""
    made_of, past = [], [(np.zeros((0, made.MOONSHINE_WIDTH)),) * 2] * made.MOONSHINE_LAYERS
    for begin in range(0, len(frames), pace.chunk):
        new = frames[begin : begin + pace.chunk + pace.ahead]
        states, kept = plain.states(new, past, begin)
        made_of.append(states[: pace.chunk])
        past = [
            tuple(np.concatenate([a, b[: pace.chunk]]) for a, b in zip(*pair, strict=True))
            for pair in zip(past, kept, strict=True)
        ]
    return np.concatenate(made_of)


@pytest.mark.parametrize("seconds", [0.3, 0.55, 1.1, 3.0])
def test_much_sound_at_once_is_heard_chunk_by_chunk(tmp_path, seconds, steady):
    pace = Pace(ahead=5, chunk=16)
    plain, encoder, _ = loaded(tmp_path, exact=True, pace=pace)
    samples = sound(seconds)
    window = encoder.encode([steady], [samples])[0]
    frames = plain.frames(samples, (KEPT.mean, KEPT.square))[: len(window)]
    close(seen(window), keys(plain, chunk_by_chunk(plain, frames, pace)))
    assert window.whole
    assert window.final == max(0, len(window) - pace.ahead)
    step = pace.chunk * STATE
    first = pace.ahead * STATE + BEHIND  # so that every step makes a whole chunk final
    later = encoder.encode([steady], [samples[:first]])[0]
    for end in range(first + step, len(samples) + step, step):
        later = encoder.encode([later], [samples[len(later) * STATE : end]])[0]
    close(seen(later), seen(window))
    assert len(later.frames) == min(pace.ahead, len(window))


def test_together_as_alone_in_chunks(tmp_path):
    _, encoder, _ = loaded(tmp_path, exact=True, pace=Pace(ahead=5, chunk=16))
    sounds = [sound(length, seed) for seed, length in enumerate((0.3, 1.1, 3.0))]
    for one, new in zip(encoder.encode([Encoded()] * 3, sounds), sounds, strict=True):
        alone = encoder.encode([Encoded()], [new])[0]
        assert (len(one), one.final) == (len(alone), alone.final)
        np.testing.assert_allclose(seen(one), seen(alone), atol=1e-3)


def test_a_final_state_stays_as_it_is(both):
    _, encoder, _ = both
    samples = sound(6.0)
    window = encoder.encode([Encoded()], [samples[:40_000]])[0]
    final = window.final
    later = in_steps(encoder, samples, 8000, window)
    assert later.final > final + 80
    np.testing.assert_array_equal(seen(later)[:final], seen(window)[:final])
    for name, array in window.past.items():
        np.testing.assert_array_equal(later.past[name][:, :, :final], array)


def test_a_window_that_begins_anew_knows_only_the_level(both):
    _, encoder, _ = both
    before = encoder.encode([Encoded()], [sound(3.0, seed=1)])[0]
    anew = before.anew()
    assert (len(anew), anew.level, anew.past, anew.memory) == (0, before.level, {}, {})
    after = encoder.encode([anew], [sound(2.0)])[0]
    same = encoder.encode([Encoded(before.level)], [sound(2.0)])[0]
    np.testing.assert_array_equal(seen(after), seen(same))


def test_together_as_alone(both):
    _, encoder, _ = both
    lengths = (0.4, 1.0, 2.5, 2.5, 6.0)
    windows = [
        in_steps(encoder, sound(length, seed), 8000, Encoded())
        for seed, length in enumerate(lengths)
    ]
    windows += [Encoded(), windows[2].anew()]
    sounds = [sound(0.3 + 0.1 * (seed % 3), 100 + seed) for seed in range(len(windows))]
    together = encoder.encode(windows, sounds)
    for window, new, one in zip(windows, sounds, together, strict=True):
        alone = encoder.encode([window], [new])[0]
        assert (len(one), one.final) == (len(alone), alone.final)
        assert one.level.mean == pytest.approx(alone.level.mean, abs=1e-6)
        np.testing.assert_allclose(seen(one), seen(alone), atol=1e-3)


def test_a_window_keeps_nothing_that_was_made_for_others(both):
    """A speaker who falls silent would keep in memory what was made of all who spoke with them."""
    _, encoder, _ = both
    windows = encoder.encode([Encoded()] * 4, [sound(3.0, seed) for seed in range(4)])
    for window in windows:
        kept = [window.frames, *window.past.values(), *window.memory.values()]
        assert all(held(array) == array.nbytes > 0 for array in kept)


def test_too_little_sound_changes_nothing(both):
    _, encoder, _ = both
    window = encoder.encode([Encoded()], [sound(1.0)])[0]
    assert encoder.encode([window], [sound(1.0)[: STATE + BEHIND - 1]])[0] is window
    assert len(encoder.encode([window], [sound(1.0)[: STATE + BEHIND]])[0]) == len(window) + 1


def test_a_second_of_sound_stays_open():
    assert (OPEN - 1) * STATE < 16_000 <= OPEN * STATE


def test_all_that_is_there_is_looked_at_together_unless_it_was_trained_in_chunks():
    assert Pace().pass_over(500) == 500
    assert [Pace(ahead=10, chunk=5).pass_over(frames) for frames in (14, 15, 16)] == [14, 15, 15]


def test_the_level_is_that_of_all_sound(both):
    """Every frame of the first convolution counts once, whatever the steps."""
    plain, encoder, _ = both
    samples = sound(2.0) * np.linspace(0.1, 2.0, 32_000, dtype=np.float32)
    window = in_steps(encoder, samples, 5000, Encoded())
    y = np.tanh(plain.convolved(samples[: len(window) * STATE + BEHIND, None], 1, 64))
    assert window.level.count == len(y)
    assert window.level.mean == pytest.approx(y.mean(), abs=1e-6)
    assert window.level.square == pytest.approx((y**2).mean(), abs=1e-6)


def test_old_sound_counts_less_and_less(both, monkeypatch):
    _, encoder, _ = both
    monkeypatch.setattr(module, "LONG", 500)
    window = in_steps(encoder, sound(8.0), 8000, Encoded())
    loud, quiet = window.level.square, 0.0
    samples = np.zeros(10 * 16_000, np.float32)
    window = in_steps(encoder, samples, 8000, window.anew())
    assert window.level.count == 500
    assert quiet <= window.level.square < 0.1 * loud


def test_the_decoder_reads_what_the_encoder_made(both):
    """Windows of several lengths at once."""
    _, encoder, decoder = both
    windows = encoder.encode([Encoded(), Encoded()], [sound(1.0), sound(2.0)])
    prompt = Prompt((1,), 3)
    together = decoder.go_on([window.memory for window in windows], [prompt] * 2, 1)
    for window, found in zip(windows, together, strict=True):
        alone = decoder.go_on([window.memory], [prompt], 1)[0]
        assert found.tokens == alone.tokens
        assert len(alone.looks[0]) == len(window)
        np.testing.assert_allclose(found.looks[0][: len(window)], alone.looks[0], atol=1e-3)
