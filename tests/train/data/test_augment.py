"""Augmentation against independent computations; all of it repeats with its seed."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.train.data.augment import (
    GRAIN,
    SPEC_AUGMENT,
    echoes,
    in_rooms,
    play_at,
    shift_pitch,
    tilt,
    with_noise,
)

RATE = 16_000


def sine(pitch: float, seconds: float = 1.0) -> torch.Tensor:
    time = torch.arange(int(seconds * RATE), dtype=torch.float64) / RATE
    return (1000 * torch.sin(2 * torch.pi * pitch * time)).float().unsqueeze(0)


def pitch_of(sound: torch.Tensor) -> float:
    windowed = sound.double() * torch.hann_window(len(sound), dtype=torch.float64)
    spectrum = torch.fft.rfft(windowed, 8 * len(sound)).abs()
    return float(spectrum.argmax()) * RATE / (8 * len(sound))


@pytest.mark.parametrize("speed", [0.9, 1.1, 1.25])
def test_speed_resamples_as_soxr_does(speed):
    import soxr

    random = np.random.default_rng(0)
    smooth = np.convolve(random.standard_normal(RATE), np.hanning(33), "same").astype(np.float32)
    wanted = soxr.resample(smooth, RATE * speed, RATE, quality="VHQ")
    ours = play_at(torch.from_numpy(smooth)[None], torch.tensor([speed]), len(wanted))[0].numpy()
    inside = slice(200, len(wanted) - 200)
    error = np.linalg.norm(ours[inside] - wanted[inside]) / np.linalg.norm(wanted[inside])
    assert error < 0.01


def test_speed_one_is_the_sound_itself_and_rows_have_their_own():
    sound = torch.cat([sine(400), sine(400)])
    played = play_at(sound, torch.tensor([1.0, 1.1]), 14_000)
    torch.testing.assert_close(played[0], sound[0, :14_000], atol=1e-3, rtol=0)
    assert abs(pitch_of(played[1]) - 440) < 1


def test_what_would_fold_back_is_removed():
    fast = play_at(sine(7_500), torch.tensor([1.25]), 12_000)[0]
    assert fast[100:-100].abs().max() < 40  # 7.5 kHz becomes 9.4: beyond what 16 kHz can hold


def test_pitch_moves_and_duration_stays():
    sound = torch.cat([sine(300, 2.0), sine(300, 2.0)])
    shifted = shift_pitch(sound, torch.tensor([1.2, 0.8]))
    assert shifted.shape == sound.shape
    for row, wanted in enumerate((360, 240)):
        assert abs(pitch_of(shifted[row, 4000:28_000]) - wanted) < 5
        assert shifted[row, 4000:28_000].abs().max() > 900
    torch.testing.assert_close(
        shift_pitch(sound, torch.ones(2))[:, GRAIN:], sound[:, GRAIN // 2 : -GRAIN // 2]
    )


@pytest.mark.parametrize("factor", [0.8, 1.013, 1.2])
def test_a_shifted_pitch_is_no_louder(factor):
    """What is read between two samples is their mean, and the heads fade into each other: a level
    that does not change would else be heard as a tone."""
    level = torch.full((1, RATE), 1000.0)
    torch.testing.assert_close(shift_pitch(level, torch.tensor([factor])), level)


def test_echo_is_delayed_and_decayed():
    sound = torch.zeros(1, 100)
    sound[0, 10] = 8.0
    heard = echoes(sound, torch.tensor([30]), torch.tensor([0.5]))[0]
    assert heard.nonzero().flatten().tolist() == [10, 40]
    assert heard[40] == 4.0


def test_tilt_changes_an_octave_by_its_decibels():
    low, high = (tilt(sine(p), torch.tensor([3.0]))[0].abs().max() for p in (1000, 2000))
    assert abs(20 * torch.log10(high / low) - 3) < 0.2
    assert abs(low - 1000) < 20


@settings(max_examples=20)
@given(st.integers(5, 300), st.integers(1, 200), st.integers(0, 99))
def test_rooms_convolve(samples, taps, seed):
    random = np.random.default_rng(seed)
    sound, response = random.standard_normal((2, samples)), random.standard_normal((2, taps))
    ours = in_rooms(torch.from_numpy(sound), torch.from_numpy(response)).numpy()
    for row in range(2):
        wanted = np.convolve(sound[row], response[row])[:samples]
        np.testing.assert_allclose(ours[row], wanted, atol=1e-9)


def test_noise_has_its_ratio_over_the_real_part():
    sound = torch.cat([sine(300), sine(500)])
    valid = torch.arange(RATE) < torch.tensor([[RATE], [RATE // 2]])
    sound = sound * valid
    noise = torch.randn(2, RATE, generator=torch.Generator().manual_seed(0))
    noisy = with_noise(sound, valid, noise, torch.tensor([10.0, 20.0]))
    for row, (length, wanted) in enumerate(((RATE, 10), (RATE // 2, 20))):
        added = (noisy - sound)[row, :length]
        ratio = 10 * torch.log10(sound[row, :length].square().mean() / added.square().mean())
        assert abs(float(ratio) - wanted) < 0.3
    assert not (noisy - sound)[1, RATE // 2 :].any()


@settings(max_examples=30)
@given(st.integers(1, 300), st.integers(0, 1000), st.sampled_from(["LB", "LD"]))
def test_masks_hide_spans_no_wider_than_allowed(frames, seed, kind):
    features = torch.ones(3, frames, 80)
    lengths = torch.tensor([frames, max(1, frames // 2), 1])
    fill = torch.full((80,), 9.0)
    random = torch.Generator().manual_seed(seed)
    masked = SPEC_AUGMENT[kind](features, lengths, fill, random)
    again = SPEC_AUGMENT[kind](features, lengths, fill, torch.Generator().manual_seed(seed))
    assert torch.equal(masked, again)
    assert set(masked.unique().tolist()) <= {1.0, 9.0}
    count = {"LB": 1, "LD": 2}[kind]
    for row in range(3):
        hidden = masked[row] == 9.0
        whole_bands = hidden.all(0).sum() if not hidden.all() else 0
        whole_frames = hidden.all(1)
        assert whole_bands <= 27 * count
        assert not whole_frames[int(lengths[row]) :].any() or hidden.all()
        assert whole_frames.sum() <= 100 * count


def hidden_on_average(masks: int, widest: int, length: int, random: np.random.Generator) -> float:
    """How much of a length so many masks cover, by drawing them one by one."""
    covered = []
    for _ in range(4000):
        hidden = np.zeros(length, bool)
        for _ in range(masks):
            width = random.integers(0, widest + 1)
            start = random.integers(0, length - width + 1)
            hidden[start : start + width] = True
        covered.append(hidden.mean())
    return float(np.mean(covered))


@pytest.mark.parametrize(("kind", "masks"), [("LB", 1), ("LD", 2)])
def test_the_policies_are_those_of_librispeech(kind, masks):
    """Once (LB) or twice (LD): up to 27 of 80 bands and up to 100 frames."""
    features = torch.ones(2000, 300, 80)
    random = torch.Generator().manual_seed(0)
    masked = SPEC_AUGMENT[kind](features, torch.full((2000,), 300), torch.zeros(80), random)
    hidden = masked == 0
    by_hand = np.random.default_rng(0)
    frames, bands = hidden.all(2).float().mean(), hidden.all(1).float().mean()
    assert float(frames) == pytest.approx(hidden_on_average(masks, 100, 300, by_hand), abs=0.01)
    assert float(bands) == pytest.approx(hidden_on_average(masks, 27, 80, by_hand), abs=0.01)
    assert torch.equal(hidden, hidden.all(2, keepdim=True) | hidden.all(1, keepdim=True))
