"""The stream around the network is tested with a network of a few known operations; the real one
where its weights can be had."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.resample import resample
from dragoman.audio.vad import CONTEXT, WINDOW, Vad, utterances
from dragoman.errors import DragomanError

onnx = pytest.importorskip("onnx", reason="onnx, of the train extra, makes the stand-in network")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A network that gives each window's mean, and counts its windows in the state."""
    from onnx import TensorProto, helper

    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    state = [1, 1, 128]
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["input"], ["speech_probs"], axes=[1], keepdims=0),
            helper.make_node("Shape", ["input"], ["shape"]),
            helper.make_node("Gather", ["shape", "first"], ["count"]),
            helper.make_node("Cast", ["count"], ["added"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["h", "added"], ["hn"]),
            helper.make_node("Identity", ["c"], ["cn"]),
        ],
        "plain",
        [value("input", ["n", CONTEXT + WINDOW]), value("h", state), value("c", state)],
        [value("speech_probs", ["n"]), value("hn", state), value("cn", state)],
        [helper.make_tensor("first", TensorProto.INT64, [], [0])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = tmp_path_factory.mktemp("vad") / "plain.onnx"
    onnx.save(model, path)
    return Vad(path)


def means(samples):
    """What the stand-in gives, computed another way."""
    padded = np.concatenate([np.zeros(CONTEXT), samples, np.zeros(-len(samples) % WINDOW)])
    starts = range(0, len(padded) - CONTEXT, WINDOW)
    return [padded[at : at + CONTEXT + WINDOW].mean() for at in starts]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2000), min_size=1, max_size=10))
def test_windows_follow_each_other_with_their_context_however_sound_comes(plain, sizes):
    samples = np.random.default_rng(1).uniform(-1, 1, sum(sizes)).astype(np.float32)
    stream = plain.stream()
    got = [stream.hear(block) for block in np.split(samples, np.cumsum(sizes)[:-1])]
    assert sum(map(len, got)) == len(samples) // WINDOW
    got.append(stream.finish())
    assert np.allclose(np.concatenate(got), means(samples), atol=1e-6)
    assert stream.hidden[0, 0, 0] == len(means(samples))


def test_a_long_block_goes_through_in_parts(plain):
    samples = np.random.default_rng(1).uniform(-1, 1, WINDOW * 1500).astype(np.float32)
    stream = plain.stream()
    assert np.allclose(stream.hear(samples), means(samples), atol=1e-6)
    assert len(stream._heard) == CONTEXT


@settings(max_examples=20)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=8))
def test_soft_sound_is_turned_up_however_it_comes(plain, sizes):
    samples = np.random.default_rng(1).uniform(0, 0.004, sum(sizes)).astype(np.float32)
    stream, whole = plain.stream(), plain.stream()
    got = [stream.hear(block) for block in np.split(samples, np.cumsum(sizes)[:-1])]
    assert np.allclose(np.concatenate(got), whole.hear(samples), atol=1e-6)


def test_soft_sound_becomes_as_loud_as_speech(plain):
    samples = np.full(RATE * 150, 0.004, np.float32)
    assert plain.stream().hear(samples)[1:] == pytest.approx(0.1, rel=0.01)
    assert plain.stream().hear(samples / 100)[1:] == pytest.approx(0.004, rel=0.01)
    after_shout = plain.stream().hear(np.concatenate([np.ones(WINDOW, np.float32), samples]))
    assert after_shout[2] == pytest.approx(0.004, rel=0.01)
    assert after_shout[-1] == pytest.approx(0.1, rel=0.01)


def test_utterances_of_chunks(plain):
    loud, quiet = np.ones(RATE, np.float32), np.zeros(RATE, np.float32)
    chunks = [Chunk(quiet, False), Chunk(loud, False), Chunk(quiet, False), Chunk(loud, True)]
    one, two = utterances(chunks, plain)
    assert (one.start, one.end) == pytest.approx((0.9, 2.1), abs=0.04)
    assert two.start == pytest.approx(2.9, abs=0.04)
    assert two.end == 4.0


def test_a_file_that_is_no_network(tmp_path):
    (tmp_path / "a.onnx").write_bytes(b"nothing")
    with pytest.raises(DragomanError, match="not a voice activity model"):
        Vad(tmp_path / "a.onnx")


@pytest.fixture(scope="module")
def silero():
    try:
        return Vad.load()
    except DragomanError as error:
        pytest.skip(f"no weights: {error}")


@pytest.mark.weights
def test_silence_and_noise_are_no_speech(silero):
    rng = np.random.default_rng(0)
    for sound in (np.zeros(RATE * 10), rng.normal(0, 0.1, RATE * 10), rng.normal(0, 1e-4, RATE)):
        assert list(utterances([Chunk(sound.astype(np.float32), True)], silero)) == []


@pytest.mark.weights
@pytest.mark.parametrize("gain", [1.0, 0.005])
def test_speech_is_found_where_it_is(silero, gain):
    from hibari import SAMPLE_RATE, Hibari

    voice = Hibari()("The meeting begins at nine o'clock in the morning.", seed=0)
    spoken = resample(np.asarray(voice, np.float32), SAMPLE_RATE)
    gap = np.random.default_rng(0).normal(0, 1e-3, RATE * 2).astype(np.float32)
    sound = gain * np.concatenate([gap, spoken, gap, spoken, gap])
    found = list(utterances([Chunk(sound.astype(np.float32), True)], silero))
    length = len(spoken) / RATE
    assert len(found) == 2
    assert found[0].start == pytest.approx(2.0, abs=0.35)
    assert found[1].end == pytest.approx(2 * length + 4.0, abs=0.35)
