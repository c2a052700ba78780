"""The pitch tracker: right on tones, unsure of noise, blind to the future."""

import numpy as np
import pytest
import torch

from dragoman.models.exported.pitch import LOW_RATE
from dragoman.train.data.front import FrontEnd
from dragoman.train.data.pitch import Pitch
from dragoman.train.recipe import Augment

RATE = 16_000


def voice(pitch: float, seconds: float = 1.0) -> torch.Tensor:
    """A tone with harmonics."""
    time = torch.arange(int(seconds * RATE)) / RATE
    parts = [torch.sin(2 * torch.pi * pitch * n * time) / n for n in range(1, 8)]
    return 3000 * torch.stack(parts).sum(0)


@pytest.mark.parametrize("pitch", [90.0, 140.0, 220.0, 330.0])
def test_tones_have_their_pitch(pitch):
    tracker = Pitch()
    lag = tracker.follow(tracker.similarity(voice(pitch).unsqueeze(0)))[0, 20:]
    found = LOW_RATE / tracker.lags[lag]
    assert ((found / pitch).log().abs() < 0.05).all()


def test_a_lag_that_is_followed_pays_for_its_jumps():
    """Lag by lag in numpy: the best way to each, at ten times the logarithm of a jump, squared."""
    tracker = Pitch()
    similarity = torch.rand(1, 20, len(tracker.lags), generator=torch.Generator().manual_seed(1))
    logs = tracker.lags.double().log().numpy()
    favour, total = 0.1 * np.exp(logs - logs[-1]), np.zeros(len(logs))
    followed, free = [], []
    for frame in similarity[0].double().numpy() - favour:
        ways = [max(total - 10 * (logs - here) ** 2) for here in logs]
        total = np.array(ways) + frame
        followed.append(int(total.argmax()))
        free.append(int(frame.argmax()))
    assert tracker.follow(similarity)[0].tolist() == followed
    assert followed != free


def test_tones_are_periodic_and_noise_is_not():
    noise = 3000 * torch.randn(RATE, generator=torch.Generator().manual_seed(0))
    features = Pitch()(torch.stack([voice(150), noise]))
    assert features[0, 20:, 0].mean() < features[1, 20:, 0].mean() - 0.3
    assert features[0, 20:, 2].abs().max() < 0.2  # a steady tone does not change
    assert features[0, 60:, 1].abs().max() < 0.05  # nor does it leave its own mean


def test_a_rise_is_a_positive_change():
    time = torch.arange(RATE) / RATE
    rising = 3000 * torch.sin(2 * torch.pi * (120 * time + 60 * time.square()))
    features = Pitch()(rising.unsqueeze(0))[0]
    assert features[30:, 2].mean() > 0.02
    assert features[90, 1] > 0.1


def test_the_future_does_not_change_the_past():
    sound = voice(150, 2.0).unsqueeze(0)
    changed = sound.clone()
    changed[:, RATE:] = 0
    one, other = Pitch()(sound), Pitch()(changed)
    before = (RATE - 400) // 160 - 1
    torch.testing.assert_close(one[:, :before], other[:, :before])


def test_83_features_are_80_and_pitch():
    from types import SimpleNamespace

    sound = voice(150).unsqueeze(0).to(torch.int16)
    batch = SimpleNamespace(sound=sound, samples=torch.tensor([RATE]), perturbed=False)
    features, lengths = FrontEnd(83, Augment(spec="none"), 0)(batch)
    plain, same = FrontEnd(80, Augment(spec="none"), 0)(batch)
    assert features.shape == (1, int(lengths), 83)
    assert torch.equal(lengths, same)
    torch.testing.assert_close(features[..., :80], plain)
