"""Rooms decay as long as they say, noise has the ratio it is told, and a seed repeats both."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman.train.data.rooms import (
    Room,
    _fast_length,
    add_noise,
    coloured_noise,
    impulse_response,
    in_room,
)

RATE = 16_000


def test_the_tail_falls_60_db_in_its_reverberation_time():
    room = Room(rt60=0.5, distance=0.3, direct_to_reverberant=0)
    energy = np.mean(
        [impulse_response(room, RATE, np.random.default_rng(s)) ** 2 for s in range(50)], axis=0
    )
    early, late = energy[1600:2400].mean(), energy[5600:6400].mean()
    assert abs(10 * np.log10(early / late) - 60 * (4000 / RATE) / 0.5) < 1.0


def test_energy_is_one_and_the_direct_sound_first():
    room = Room(rt60=0.3, distance=2.0, direct_to_reverberant=6)
    response = impulse_response(room, RATE, np.random.default_rng(0))
    assert np.isclose(np.sum(response**2), 1, atol=1e-5)
    direct = response[0] ** 2 / np.sum(response[1:] ** 2)
    assert np.isclose(10 * np.log10(direct), 6, atol=0.01)
    assert not response[1 : int(RATE * 2.0 / 343) - 1].any()


@given(st.integers(1, 400), st.integers(1, 300), st.integers(0, 99))
def test_in_room_is_convolution(samples, taps, seed):
    random = np.random.default_rng(seed)
    sound = random.standard_normal(samples).astype(np.float32)
    response = random.standard_normal(taps).astype(np.float32)
    expected = np.convolve(sound, response)[:samples]
    np.testing.assert_allclose(in_room(sound, response), expected, atol=1e-3)


def test_noise_has_its_ratio_and_slope():
    random = np.random.default_rng(0)
    sound = np.sin(np.arange(64000) / 5).astype(np.float32)
    noisy = add_noise(sound, 10, 1.0, random)
    ratio = 10 * np.log10(np.mean(sound**2) / np.mean((noisy - sound) ** 2))
    assert abs(ratio - 10) < 0.3
    power = np.abs(np.fft.rfft(coloured_noise(1 << 15, 2.0, random))) ** 2
    octave = power[2000:4000].mean() / power[4000:8000].mean()
    assert abs(10 * np.log10(octave) - 6) < 1  # brown noise: 6 dB per octave


@given(st.integers(1, 1_000_000))
def test_fast_lengths_have_small_factors(least):
    length = _fast_length(least)
    assert least <= length < 2 * least + 2
    for prime in (2, 3, 5):
        while length % prime == 0:
            length //= prime
    assert length == 1
