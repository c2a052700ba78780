"""Loud channels made quiet: the same net, of which 8 bits leave more."""

from pathlib import Path

import numpy as np
import pytest

from dragoman.models.graphs import Graphs
from dragoman.models.moonshine import encoder as module
from dragoman.models.moonshine.ease import LOUD, eased, murmur, readers, too_loud
from dragoman.models.moonshine.encoder import Encoded, Encoder
from dragoman.models.moonshine.weights import moonshine_weights
from dragoman.models.whisper.graph import BYTES_BELOW, GELU_LEAST, Builder
from dragoman.models.whisper.weights import Weights

from . import made_onnx as made
from .test_moonshine_encoder import gelu, sound

CHANNEL, TIMES = 5, 60.0


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    """Of a made-up Moonshine in which each norm makes one channel loud, as the real one's do."""
    folder = tmp_path_factory.mktemp("loud")
    paths = folder / "encoder_model.onnx", folder / "decoder_model_merged.onnx"
    made.moonshine_encoder(paths[0], None)
    made.moonshine_decoder(paths[1], None)
    plain = moonshine_weights(*paths)
    arrays = {name: plain.stored(name) for name in plain}
    for norm, matrix in readers(plain).items():
        gamma, rows = (plain.array(f"{name}") for name in (f"{norm}/gamma", f"{matrix}/weight"))
        gamma[CHANNEL] = TIMES * np.abs(gamma).mean()
        rows[:, CHANNEL] /= TIMES
        arrays |= {f"{norm}/gamma": gamma, f"{matrix}/weight": rows}
        arrays.pop(f"{matrix}/weight_scale", None)
    return Weights(folder, arrays)


def states(weights: Weights, *, exact: bool) -> np.ndarray:
    encoder = Encoder(weights, Graphs(None, 1), lambda x: {"x": x[None, None]}, exact=exact)
    return encoder.encode([Encoded()], [sound(2.0)])[0].memory["x"][0, 0]


def spoken_in(monkeypatch: pytest.MonkeyPatch) -> list[Weights]:
    """The weights that encoders in bytes are made of from now on."""
    found: list[Weights] = []
    plain = module.layers_graph

    def noted(weights, *, exact, more=()):
        if not exact:
            found.append(weights)
        return plain(weights, exact=exact, more=more)

    monkeypatch.setattr(module, "layers_graph", noted)
    monkeypatch.setattr(module, "are_exact", lambda: True)
    return found


def test_a_channel_is_brought_down_to_what_is_loud():
    put_out = np.ones((4, 3, 7), np.float32)
    put_out[1, 2] = [0.5, -8 * LOUD, 2 * LOUD, LOUD, -0.1, 1, -1]
    np.testing.assert_allclose(too_loud(put_out), [1, 8, 2, 1, 1, 1, 1], rtol=1e-6)
    assert (too_loud(np.zeros((2, 3), np.float32)) == 1).all()


def test_every_norm_but_the_last_has_the_matrix_behind_it(weights: Weights):
    norms = {name.removesuffix("/gamma") for name in weights if name.endswith("norm/gamma")}
    ours = {name for name in norms if name.startswith("encoder/layer_")}
    found = readers(weights)
    assert set(found) == ours - {"encoder/layer_norm"}
    assert len(found) == 2 * made.MOONSHINE_LAYERS
    for norm, matrix in found.items():
        assert matrix == norm.replace("layer_norm", "linear_0")
        assert f"{matrix}/weight" in weights


def test_it_is_the_same_net(weights: Weights, monkeypatch: pytest.MonkeyPatch):
    """In floats, of the weights that the one in bytes is made of."""
    found = spoken_in(monkeypatch)
    states(weights, exact=False)
    (quiet,) = found
    np.testing.assert_allclose(
        states(quiet, exact=True), states(weights, exact=True), rtol=1e-3, atol=1e-4
    )
    for norm, matrix in readers(weights).items():
        factors = weights.array(f"{norm}/gamma") / quiet.array(f"{norm}/gamma")
        assert factors[CHANNEL] > 5
        assert np.median(factors) == 1
        rows, before = (one.array(f"{matrix}/weight") for one in (quiet, weights))
        np.testing.assert_allclose(rows, before * factors, rtol=1e-5)


def test_bytes_are_nearer_to_floats(weights: Weights, monkeypatch: pytest.MonkeyPatch):
    spoken_in(monkeypatch)
    exact = states(weights, exact=True)
    ours = np.abs(states(weights, exact=False) - exact).mean()
    monkeypatch.setattr(module, "eased", lambda weights, put_out: weights)
    plain = np.abs(states(weights, exact=False) - exact).mean()
    assert 0 < 3 * ours < plain


def test_nothing_else_is_touched(weights: Weights):
    put_out = {norm: np.ones((1, made.MOONSHINE_WIDTH), np.float32) for norm in readers(weights)}
    same = eased(weights, put_out)
    assert set(same) == set(weights)
    for name in same:
        if same.stored(name).ndim:
            np.testing.assert_array_equal(same.array(name), weights.array(name))


def test_the_murmur_is_the_same_every_time_and_no_louder_than_sound():
    np.testing.assert_array_equal(murmur(), murmur())
    assert 0.3 < np.abs(murmur()).max() < 1


def test_the_murmur_has_a_voice_and_a_rhythm():
    """Five seconds: a fifth of a hertz is one step of its spectrum."""
    sound = murmur()
    assert sound.shape == (5 * 16_000,)
    loud = np.abs(np.fft.rfft(sound)) / len(sound)
    strongest = np.argsort(loud)[::-1][:5] / 5
    assert sorted(strongest) == [116, 120, 124, 240, 360]  # the lowest with its rhythm
    # A sine of 0.1 has half of that on either side; a harmonic is as weak as it is high.
    for harmonic in (1, 2, 19):
        np.testing.assert_allclose(loud[harmonic * 600], 0.05 / harmonic, rtol=0.02)
    assert loud[20 * 600] < 0.0005
    still = sound[np.arange(3, 80, 4) * 1000]  # where the rhythm is at its lowest
    assert 0.002 < still.std() < 0.009  # noise alone


@pytest.mark.parametrize("least", [None, GELU_LEAST])
def test_a_product_of_what_hardly_goes_below_zero_has_twice_the_steps(
    tmp_path: Path, least: float | None
):
    """As far from the exact product as the steps are wide, and not further."""
    random = np.random.default_rng(0)
    x = gelu(random.normal(scale=2, size=(50, 64))).astype(np.float32)
    x[0] = GELU_LEAST  # as low as it goes
    matrix = np.eye(64, dtype=np.int8) * 100  # each number of x by itself
    arrays = {
        "m/weight": matrix,
        "m/weight_scale": np.full(64, 100, np.float32),
        # What a builder wants to know of any net.
        "decoder/num_heads": np.array(8),
        "decoder/embeddings/weight": np.zeros((4, 64), np.float32),
        "decoder/layer_0/ffn/linear_0/weight": np.zeros((64, 64), np.float32),
        "decoder/layer_0/ffn/linear_1/weight": np.zeros((64, 64), np.float32),
    }
    b = Builder(Weights(tmp_path, arrays))
    y = b.linear("x", "m", least=least)
    session = Graphs(None, 1).session("m", lambda: b.model({"x": np.float32}, [y]))
    (product,) = session.run(None, {"x": x})
    largest = x.max(axis=1, keepdims=True)
    if least is None:
        steps = np.abs(x).max(axis=1, keepdims=True) / 127
    else:
        steps = np.maximum(largest / (255 - BYTES_BELOW), -least / BYTES_BELOW)
    off = np.abs(product - x)
    assert (off <= 0.501 * steps).all()
    assert off.max() > 0.4 * steps.max()
