import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.audio.resample import Resampler, check_rate, resample, resampled
from dragoman.errors import DragomanError

RATES = st.sampled_from([8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 96000])


@settings(max_examples=40)
@given(RATES | st.integers(4000, 100_000), st.lists(st.integers(0, 5000), max_size=12), st.data())
def test_block_by_block_equals_the_whole_at_once(rate, sizes, data):
    seed = data.draw(st.integers(0, 1000))
    samples = np.random.default_rng(seed).uniform(-1, 1, sum(sizes)).astype(np.float32)
    blocks = np.split(samples, np.cumsum(sizes)[:-1]) if sizes else []
    streamed = np.concatenate([*resampled(blocks, rate), np.zeros(0, np.float32)])
    at_once = soxr.resample(samples, rate, 16000, quality="HQ")
    assert len(streamed) == len(at_once)
    assert np.allclose(streamed, at_once, atol=1e-5)


def test_a_tone_keeps_its_pitch_and_level():
    t = np.arange(44100 * 2) / 44100
    out = resample(np.sin(2 * np.pi * 1000 * t).astype(np.float32), 44100)
    expected = np.sin(2 * np.pi * 1000 * np.arange(32000) / 16000)
    assert len(out) == 32000
    assert np.abs(out - expected)[500:-500].max() < 1e-3


def test_what_is_above_the_new_range_is_removed():
    t = np.arange(48000) / 48000
    out = resample(np.sin(2 * np.pi * 12000 * t).astype(np.float32), 48000)
    assert np.abs(out[500:-500]).max() < 1e-3


def test_the_lag_is_short_and_stays():
    resampler, given_out = Resampler(48000), 0
    lags = []
    for n in range(1, 500):
        given_out += len(resampler.feed(np.zeros(960, np.float32)))
        lags.append(n * 0.02 - given_out / 16000)
    assert max(lags) < 0.05


@pytest.mark.parametrize("rate", [0, -1, 1, 3999, 2**32 - 1])
def test_rates_that_are_none(rate):
    with pytest.raises(DragomanError, match=r"talk\.wav says it has"):
        check_rate(rate, "talk.wav")
