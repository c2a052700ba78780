"""The pieces of a Transformer on a device, each against its formula."""

from math import erf
from pathlib import Path

import numpy as np
import pytest

from dragoman.models.whisper.weights import Weights

torch = pytest.importorskip("torch")

from dragoman.models.gpu.layers import Reader, Turns, looking  # noqa: E402

HEADS, SIZE, TURNED = 3, 10, 6
WIDTH = HEADS * SIZE
random = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def reader(arrays: dict[str, np.ndarray]) -> Reader:
    return Reader(Weights(Path("made"), arrays), torch.device("cpu"), torch.float32)


@pytest.mark.parametrize("biased", [False, True])
def test_positions_turn_queries_and_keys_and_nothing_else(biased):
    """The first numbers of a head as complex ones: the first half of them are real parts, the
    second half imaginary ones."""
    arrays = {
        "a/layer_norm/gamma": np.ones(WIDTH, np.float32),
        "a/linear_0/weight": normal(3 * WIDTH, WIDTH),
        "a/linear_1/weight": normal(WIDTH, WIDTH),
    }
    if biased:
        arrays["a/linear_0/bias"] = normal(3 * WIDTH)
    angles = random.uniform(0, 7, (4, TURNED // 2)).astype(np.float32)
    places = torch.tensor([[0, 1, 2], [3, 1, 0]])
    turns = Turns.of(torch.from_numpy(np.cos(angles)), torch.from_numpy(np.sin(angles)), 16)
    x = torch.from_numpy(normal(2, 3, WIDTH))

    plain = reader(arrays).attention("a", HEADS)
    turning = reader(arrays).attention("a", HEADS, turned=TURNED)
    q, k, v = looking(plain, x, HEADS)
    found = looking(turning, x, HEADS, turns.at(places))
    for one, other, turned in zip(found, (q, k, v), (True, True, False), strict=True):
        assert one.shape == (2, HEADS, 3, 16)  # multiples of eight numbers
        assert (one[..., SIZE:] == 0).all()
        expected = other.numpy().copy()
        if turned:
            numbers = expected[..., : TURNED // 2] + 1j * expected[..., TURNED // 2 : TURNED]
            numbers = numbers * np.exp(1j * angles[places.numpy()])[:, None]
            expected[..., :TURNED] = np.concatenate([numbers.real, numbers.imag], axis=-1)
        np.testing.assert_allclose(one.numpy(), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("said", "inner", "formula"),
    [
        (None, 8, lambda x: x * (1 + np.vectorize(erf)(x / 2**0.5)) / 2),
        (3, 8, lambda x: x * (1 + np.vectorize(erf)(x / 2**0.5)) / 2),
        (0, 8, lambda x: np.maximum(x, 0)),
        (0, 16, lambda x: x[:, :8] * x[:, 8:] / (1 + np.exp(-x[:, 8:]))),
    ],
    ids=["gelu, unsaid", "gelu", "relu", "gates"],
)
def test_what_is_between_two_matrices(said, inner, formula):
    arrays = {
        "encoder/ffn/layer_norm/gamma": np.ones(4, np.float32),
        "encoder/ffn/linear_0/weight": normal(inner, 4),
        "encoder/ffn/linear_1/weight": normal(4, 8),
    }
    if said is not None:
        arrays["encoder/activation"] = np.int8(said)
    x = normal(5, 4)
    normed = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    up, down = (arrays[f"encoder/ffn/linear_{n}/weight"].T for n in (0, 1))
    found = reader(arrays).thought("encoder/ffn")(torch.from_numpy(x))
    np.testing.assert_allclose(found.numpy(), formula(normed @ up) @ down, atol=1e-4)
