"""The streaming log-mel front end against a straightforward computation of Whisper's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.models.whisper.mel import HOP, LogMel, mel_filters, scale


def plain_log_mel(sound: np.ndarray, bands: int) -> np.ndarray:
    """Whisper's definition, frame by frame with a plain Fourier sum, in double precision."""
    padded = np.pad(sound.astype(np.float64), 200, mode="reflect")
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    fourier = np.exp(-2j * np.pi * np.outer(np.arange(201), np.arange(400)) / 400)
    frames = [padded[i : i + 400] * hann for i in range(0, len(sound) // HOP * HOP, HOP)]
    power = np.abs(np.array(frames) @ fourier.T) ** 2
    mel = np.log10(np.maximum(power @ plain_filters(bands).T, 1e-10))
    return ((np.maximum(mel, mel.max() - 8.0) + 4.0) / 4.0).T


def plain_filters(bands: int) -> np.ndarray:
    def hertz(mel: float) -> float:
        return mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)

    top = 15 + 27 * np.log(8) / np.log(6.4)
    edges = [hertz(top * i / (bands + 1)) for i in range(bands + 2)]
    filters = np.zeros((bands, 201))
    for band in range(bands):
        low, middle, high = edges[band : band + 3]
        for index in range(201):
            f = index * 40.0
            slope = (f - low) / (middle - low) if f <= middle else (high - f) / (high - middle)
            filters[band, index] = max(0.0, slope) * 2 / (high - low)
    return filters


def noise(samples: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(samples)).astype(np.float32)


@pytest.mark.parametrize("bands", [80, 128])
def test_filters_match_the_plain_ones(bands: int):
    np.testing.assert_allclose(mel_filters(bands), plain_filters(bands), atol=1e-6)


def test_window_equals_whispers_on_a_padded_sound():
    sound = noise(24_000)
    front = LogMel(80)
    front.hear(sound)
    padded = np.concatenate([sound, np.zeros(16_000 + 200, np.float32)])
    np.testing.assert_allclose(front.window(100), plain_log_mel(padded, 80)[:, :250], atol=2e-5)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=12), st.integers(0, 100))
def test_chunking_changes_nothing(sizes: list[int], seed: int):
    sound = noise(sum(sizes), seed)
    whole, pieces = LogMel(80), LogMel(80)
    whole.hear(sound)
    for piece in np.split(sound, np.cumsum(sizes)[:-1]):
        pieces.hear(piece)
        pieces.window(4)
    assert pieces.frames == whole.frames == -(-len(sound) // HOP)
    np.testing.assert_allclose(pieces.window(7), whole.window(7), atol=1e-6)


def test_forgetting_keeps_the_frames_after():
    front = LogMel(80)
    front.hear(noise(32_000))
    before = front.window(0)
    front.forget(120)
    assert front.start == 120
    np.testing.assert_allclose(front.window(0), before[:, 120:])


def test_forgetting_everything_leaves_only_what_is_new():
    front = LogMel(80)
    for second in range(5):
        front.hear(noise(16_000, second))
        front.forget(front.frames)
    assert front.window(0).shape[1] <= 3
    assert front.frames == 500


def test_scaling_takes_a_louder_past_into_account():
    quiet = np.full((80, 3), 1.0, np.float32)
    assert scale(quiet).max() == pytest.approx(1.25)
    assert scale(quiet, loudest=12.0).max() == pytest.approx(2.0)  # raised to the floor of 4


@pytest.mark.parametrize("softer", [0.1, 0.003])
def test_a_soft_recording_looks_like_a_loud_one(softer: float):
    loud, soft = LogMel(80), LogMel(80)
    loud.hear(0.5 * noise(16_000))
    soft.hear(softer * 0.5 * noise(16_000))
    expected, found = loud.window(0), soft.window(0)
    np.testing.assert_allclose(found - found.max(), expected - expected.max(), atol=1e-3)
    assert found.max() == pytest.approx(1.0)


def test_silence_is_not_turned_up_to_speech():
    silence = np.full((80, 3), -10.0, np.float32)
    assert scale(silence).max() < 0
