"""What an exported net hears is what it was trained on, however the sound arrives."""

import numpy as np
import pytest
import torch

from dragoman.models.exported.features import FeatureStream
from dragoman.train.data.fbank import Fbank
from dragoman.train.data.pitch import Pitch


def voiced(seconds: float = 2.0) -> np.ndarray:
    """A gliding buzz between two silences, with some noise."""
    time = np.arange(int(16_000 * seconds)) / 16_000
    pitch = 140 + 60 * np.sin(2 * np.pi * 0.7 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / 16_000
    buzz = sum(np.sin(k * phase) / k for k in range(1, 8))
    loud = (time > 0.3) & (time < seconds - 0.3)
    noise = np.random.default_rng(0).standard_normal(len(time))
    return (0.1 * buzz * loud + 0.001 * noise).astype(np.float32)


def trained_on(sound: np.ndarray, bands: int) -> np.ndarray:
    heard, lengths = torch.from_numpy(sound * 32768)[None], torch.tensor([len(sound)])
    if bands != 83:
        return Fbank(bands)(heard, lengths)[0][0].numpy()
    mel, _ = Fbank(80)(heard, lengths)
    return torch.cat([mel, Pitch()(heard)], dim=2)[0].numpy()


@pytest.mark.parametrize("size", [160, 1111, 100_000])
@pytest.mark.parametrize("bands", [80, 83])
def test_features_of_a_stream_are_those_of_training(bands, size):
    sound = voiced()
    stream = FeatureStream(bands)
    for start in range(0, len(sound), size):
        stream.hear(sound[start : start + size], ended=start + size >= len(sound))
    expected = trained_on(sound, bands)
    assert stream.frames.shape == expected.shape
    np.testing.assert_allclose(stream.frames[:, :80], expected[:, :80], atol=2e-3)
    if bands == 83:
        # In silence the track hangs on the last digit; where there is a voice it does not.
        spoken = slice(35, 165)
        np.testing.assert_allclose(stream.frames[spoken, 80:], expected[spoken, 80:], atol=2e-2)
        heights = stream.frames[spoken, 81]
        assert heights.max() - heights.min() > 0.3  # the glide is seen


def test_forgotten_frames_are_gone():
    stream = FeatureStream(80)
    stream.hear(voiced())
    frames = stream.frames.copy()
    stream.forget(50)
    np.testing.assert_array_equal(stream.frames, frames[50:])
    stream.forget(20)
    stream.forget(10_000)
    assert stream.start == stream.end == len(frames)
