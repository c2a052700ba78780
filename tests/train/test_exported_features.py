"""What an exported net hears is what it was trained on, however the sound arrives."""

import numpy as np
import pytest
import torch

from dragoman.models.exported.features import FeatureStream
from dragoman.models.exported.pitch import PitchStream
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
@pytest.mark.parametrize("bands", [40, 80, 83])
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
    stream.forget(20)  # long gone
    assert stream.start == 50
    assert stream.samples == len(voiced())
    stream.forget(10_000)
    assert stream.start == stream.end == len(frames)


def pitch_by_hand(sound: np.ndarray) -> np.ndarray:
    """The features of pitch as they are defined, frame by frame and lag by lag: 4 kHz, frames of 25
    ms every 10 ms, 64 lags from 400 to 60 Hz, the best track so far."""
    taps = np.sinc(np.arange(-16, 17) / 4) * (0.5 + 0.5 * np.cos(np.pi * np.arange(-16, 17) / 17))
    low = np.convolve(sound * 32768.0, taps / taps.sum(), "same")[::4]
    lags = 4000 / np.geomspace(400, 60, 64)
    longest = int(np.ceil(lags[-1])) + 1
    total, heights, weights, found = np.zeros(64), [], [], []
    for begin in range(0, len(low) - 99, 40):
        span = np.concatenate([np.zeros(longest), low])[begin : begin + longest + 100]
        times = np.arange(begin - longest, begin + 100)
        span, now = span - span.mean(), np.arange(begin, begin + 100)
        alike = []
        for lag in lags:
            one, other = np.interp(now, times, span), np.interp(now - lag, times, span)
            power = np.sum(one**2) * np.sum(other**2)
            alike.append(np.sum(one * other) / np.sqrt(power + 1e8 * 100))
        reached = [max(total - 10 * np.log(lags / lag) ** 2) for lag in lags]
        total = np.array(reached) + alike - 0.1 * lags / lags[-1]
        best = int(np.argmax(total))
        heights.append(np.log(4000 / lags[best]))
        weights.append(0.01 + max(0.0, alike[best]))
        recent = np.average(heights[-75:], weights=weights[-75:])
        voicing = 2 * ((1.0001 - alike[best]) ** 0.15 - 1)
        change = heights[-1] - heights[-2] if len(heights) > 1 else 0.0
        found.append((voicing, heights[-1] - recent, 10 * change))
    return np.array(found)


@pytest.mark.parametrize("hertz", [63, 130, 390])
def test_pitch_is_as_it_is_defined(hertz):
    """Of a voice that glides, whose loudness comes and goes, over more than what counts as recent;
    low and high ones use the longest and the shortest lags."""
    time = np.arange(400 + 97 * 160) / 16_000  # the last frame just fits
    phase = 2 * np.pi * np.cumsum(hertz * (1 + 0.1 * np.sin(9 * time))) / 16_000
    buzz = sum(np.sin(k * phase) / k for k in range(1, 5)) + 0.3  # a microphone with an offset
    noise = np.random.default_rng(hertz).standard_normal(len(time))
    # From so soft that the ballast tells to loud.
    sound = (0.001 * 50**time * buzz + 0.0002 * noise).astype(np.float32)
    stream = PitchStream()
    pieces = [sound[:1], sound[1:37], sound[37:5000], sound[5000:]]
    frames = [stream.hear(piece * 32768.0, ended=piece is pieces[-1]) for piece in pieces]
    np.testing.assert_allclose(np.concatenate(frames), pitch_by_hand(sound), atol=1e-3)


def test_what_was_read_is_not_kept_twice():
    """A talk of hours would fill the memory with frames that nobody asks for again."""
    stream = FeatureStream(80)
    stream.hear(voiced(1.0))
    with pytest.raises(IndexError):
        stream._fbank.get_frame(stream.end - 1)
