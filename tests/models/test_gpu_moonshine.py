"""Moonshine's engine for GPUs, on the CPU: the states of the plain encoder, the texts of the other
engine.

Where there is a GPU, the last test runs there.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.models.graphs import Graphs
from dragoman.models.moonshine.encoder import BEHIND, LONG, STATE, Encoded, Pace
from dragoman.models.moonshine.engine import MoonshineEngine, MoonshineRules, load_engine
from dragoman.models.moonshine.tongue import Tongue
from dragoman.models.moonshine.units import MoonshineUnits
from dragoman.models.moonshine.weights import moonshine_weights
from dragoman.models.options import Options
from dragoman.models.search import Prompt
from dragoman.models.whisper.weights import Weights

from . import made_onnx as made
from .test_moonshine_encoder import PlainEncoder, sound

torch = pytest.importorskip("torch")

from dragoman.models.gpu.batches import batches  # noqa: E402
from dragoman.models.moonshine.gpu.engine import TorchEngine  # noqa: E402

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
HEADS, END, NEVER = [(0, 3), (1, 7)], 2, [0, 1, 5]
WHOLE = Pace(ahead=10**6)  # nothing is final
SECONDS = (0.3, 2.0, 0.7, 3.1)


@pytest.fixture(scope="module")
def made_weights(tmp_path_factory) -> tuple[Weights, PlainEncoder]:
    folder = tmp_path_factory.mktemp("moonshine")
    paths = folder / "encoder_model.onnx", folder / "decoder_model_merged.onnx"
    parameters = made.moonshine_encoder(paths[0], None) | made.moonshine_decoder(paths[1], None)
    return moonshine_weights(*paths), PlainEncoder(parameters)


def engine_of(weights: Weights, device="cpu", **more) -> TorchEngine:
    return TorchEngine(weights, HEADS, "float32", device, end=END, never=NEVER, **more)


@pytest.fixture(scope="module")
def engine(made_weights) -> TorchEngine:
    return engine_of(made_weights[0])


@pytest.fixture(scope="module")
def plain(made_weights) -> PlainEncoder:
    return made_weights[1]


@pytest.fixture(scope="module")
def on_cpu(made_weights) -> MoonshineEngine:
    """The engine for CPUs, in floats; nothing that it encoded is final."""
    weights = made_weights[0]
    rules = MoonshineRules(made.WORDS, end=END, no_speech=END, never=NEVER, not_first=[])
    engine = MoonshineEngine(weights, rules, Graphs(None, 1), pace=WHOLE, exact=True)
    engine._decoder = type(engine._decoder)(weights, rules, HEADS, Graphs(None, 1), exact=True)
    return engine


def states_of(plain: PlainEncoder, samples: np.ndarray, level=None) -> np.ndarray:
    count = (len(samples) - BEHIND) // STATE
    return plain.states(plain.frames(samples[: count * STATE + BEHIND], level))[0]


def close(one, other) -> None:
    np.testing.assert_allclose(one, other, atol=1e-3)


def test_windows_of_a_batch_have_the_states_of_the_plain_encoder(engine, plain):
    """However long the others are."""
    sounds = [sound(seconds, seed) for seed, seconds in enumerate(SECONDS)]
    for window, samples in zip(engine.encode([engine.new()] * 4, sounds), sounds, strict=True):
        assert len(window) == (len(samples) - BEHIND) // STATE
        close(window.states, states_of(plain, samples))


@pytest.mark.parametrize("step", [3000, 8000, 16_001])
def test_in_steps_it_is_the_same_as_at_once(engine, step):
    samples, window = sound(3.0), engine.new()
    for end in range(step, len(samples) + step, step):
        (window,) = engine.encode([window], [samples[len(window) * STATE : end]])
    (whole,) = engine.encode([engine.new()], [samples])
    assert len(window.sound) <= len(samples)
    close(window.states, whole.states)
    close(window.level, whole.level)


def test_too_little_sound_for_a_state_changes_nothing(engine):
    (window,) = engine.encode([engine.new()], [sound(1.0)])
    same, none = engine.encode([window, engine.new()], [np.zeros(BEHIND + STATE - 1, "f4")] * 2)
    assert same is window
    assert len(none) == 0
    assert len(engine.encode([none], [np.zeros(BEHIND + STATE, "f4")])[0]) == 1
    assert engine.encode([], []) == []


def test_a_speaker_is_as_loud_as_so_far(engine, plain):
    """The norm of a new window is over what was heard before it, too; of the older half a minute
    at most counts."""
    first, second = 0.3 + sound(2.0, 1), 0.1 + 0.1 * sound(1.0, 2)  # their mean is not nothing
    (before,) = engine.encode([engine.new()], [first])
    (window,) = engine.encode([before.anew()], [second])
    frames = [np.tanh(plain.convolved(_trimmed(one)[:, None], 1, 64)) for one in (first, second)]
    everything = np.concatenate(frames)
    level = everything.mean(), (everything**2).mean()
    close(window.level, level)
    close(window.states, states_of(plain, second, level))
    assert window.count == len(everything)
    long = replace(before, count=LONG)
    assert engine.encode([long.anew()], [second])[0].count == LONG


def _trimmed(samples: np.ndarray) -> np.ndarray:
    return samples[: (len(samples) - BEHIND) // STATE * STATE + BEHIND]


def test_levels_are_those_of_the_other_engine(engine, on_cpu):
    windows, levels = [engine.new()] * 2, [on_cpu.new()] * 2
    for seconds in (1.0, 2.5):
        sounds = [sound(seconds, seed) for seed in (1, 2)]
        windows = [one.anew() for one in engine.encode(windows, sounds)]
        levels = [one.anew() for one in on_cpu.encode(levels, sounds)]
    for window, other in zip(windows, levels, strict=True):
        close(window.before, (other.level.mean, other.level.square))
        assert window.count_before == other.level.count


text = st.lists(st.integers(6, made.WORDS - 1), max_size=7).map(tuple)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(data=st.data())
def test_it_says_what_the_other_engine_says(engine, on_cpu, data):
    """Batches of prompts of which more or less was said, with one beam and with several. The other
    engine is asked one by one: there a batch is another number of texts at a time."""
    count = data.draw(st.integers(1, 4))
    sounds = [sound(seconds, seed) for seed, seconds in enumerate(SECONDS[:count])]
    prompts = [
        Prompt(
            (1,),
            data.draw(st.integers(1, 9)),
            data.draw(text),
            avoid_end=data.draw(st.booleans()),
            least=data.draw(st.integers(0, 1)),
        )
        for _ in sounds
    ]
    beams = data.draw(st.sampled_from([1, 3]))
    found = engine.speak(engine.encode([engine.new()] * count, sounds), prompts, beams)
    for samples, prompt, one in zip(sounds, prompts, found, strict=True):
        (expected,) = on_cpu.speak(on_cpu.encode([Encoded()], [samples]), [prompt], beams)
        assert one.tokens == expected.tokens
        assert one.ended == expected.ended
        assert one.silence == expected.silence == 0.0
        np.testing.assert_allclose(one.log_probs, expected.log_probs, atol=1e-3)
        for look, other in zip(one.looks, expected.looks, strict=True):
            close(look, other)


def test_states_are_judged(made_weights):
    weight = np.linspace(-1, 1, made.MOONSHINE_WIDTH, dtype=np.float32)
    engine = engine_of(made_weights[0], tongue=Tongue(weight, -2.5))
    sounds = [sound(1.0), sound(2.0)]
    for window in engine.encode([engine.new()] * 2, sounds):
        close(window.judged, window.states.numpy() @ weight - 2.5)
    assert engine.new().judged.tolist() == []


def test_little_memory_means_several_batches_and_the_same_states(made_weights, monkeypatch):
    sounds = [sound(seconds) for seconds in (1.0, 2.0, 1.1, 2.1, 1.2)]
    engine, poor = engine_of(made_weights[0]), engine_of(made_weights[0])
    poor._speaker.memory = 2.5 * poor._encoder.bytes_of(64)
    sizes, encoder = [], poor._encoder
    monkeypatch.setattr(
        poor, "_encoder", type("Noting", (), {
            "bytes_of": encoder.bytes_of,
            "__call__": lambda self, *all: sizes.append(len(all[0])) or encoder(*all),
        })(),
    )  # fmt: skip
    new = [engine.new()] * 5
    for one, other in zip(poor.encode(new, sounds), engine.encode(new, sounds), strict=True):
        close(one.states, other.states)
    assert sizes == [2, 1, 1, 1]  # the longer ones take twice as much


def test_a_window_takes_memory_for_its_sound_and_its_frames(engine):
    """A state: 384 samples; six frames, as they are, squared and normed; and sixteen rows behind
    them; rows of 48 numbers, all of four bytes."""
    assert engine._encoder.bytes_of(10) == 10 * 4 * (384 + 48 * (6 * 3 + 16))


@given(
    st.lists(st.integers(1, 40), max_size=30), st.integers(1, 9), st.integers(1, 60),
)  # fmt: skip
def test_batches_are_of_one_length_and_as_large_as_they_may_be(lengths, step, memory):
    def filled(length):
        return -(-length // step) * step

    groups = list(batches(lengths, filled, lambda length: memory // length))
    assert sorted(place for group in groups for place in group) == list(range(len(lengths)))
    for group in groups:
        assert len({filled(lengths[place]) for place in group}) == 1
        assert len(group) <= max(1, memory // filled(lengths[group[0]]))
    for one, other in pairwise(groups):
        full = len(one) >= memory // filled(lengths[one[0]])
        assert full or filled(lengths[one[0]]) < filled(lengths[other[0]])


def test_a_gpu_that_is_not_there_is_a_sentence(made_weights, monkeypatch):
    monkeypatch.setattr("dragoman.models.device.gpus", lambda: 0)
    folder, units = made_weights[0].path.parent, MoonshineUnits(("", "", "", *["a"] * 90))
    with pytest.raises(DragomanError, match="There is no CUDA GPU here"):
        load_engine(folder, units, Options(device="cuda"))
    assert load_engine(folder, units, Options(device="auto")).device == "cpu"


@on_gpu
@pytest.mark.parametrize("compute", ["float32", "float16", "bfloat16"])
def test_on_a_gpu_it_is_the_same(made_weights, compute):
    """In 16 bits nearly so."""
    weights = made_weights[0]
    there = TorchEngine(weights, HEADS, compute, "cuda", end=END, never=NEVER)
    here = engine_of(weights)
    sounds = [sound(seconds, seed) for seed, seconds in enumerate(SECONDS)] * 3
    prompts = [Prompt((1,), 8)] * len(sounds)
    made_there, made_here = (e.encode([e.new()] * len(sounds), sounds) for e in (there, here))
    for one, other in zip(made_there, made_here, strict=True):
        difference = (one.states.float().cpu() - other.states).abs().mean()
        assert difference < {"float32": 1e-3, "float16": 0.01, "bfloat16": 0.1}[compute]
    for beams in (1, 3):
        found, expected = (
            there.speak(made_there, prompts, beams),
            here.speak(made_here, prompts, beams),
        )
        same = [one.tokens == other.tokens for one, other in zip(found, expected, strict=True)]
        assert all(same) if compute == "float32" else any(same)
