"""Every phrase leaves at the same level, with soft ends and little silence around it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dragoman.audio.level import LEVEL, PEAK
from dragoman.voices.polish import join, polish

RATE = 16000


def tone(seconds, loudness, frequency=300):
    return loudness * np.sin(2 * np.pi * frequency * np.arange(round(seconds * RATE)) / RATE)


def rms(samples):
    return float(np.sqrt(np.mean(np.square(samples))))


@pytest.mark.parametrize("loudness", [0.02, 0.1, 0.5, 1.0, 3.0])
def test_all_levels_become_one(loudness):
    sound = polish(tone(1, loudness), RATE)
    assert sound.dtype == np.float32
    assert rms(sound[1000:-3000]) == pytest.approx(LEVEL, rel=0.02)


def test_pauses_inside_do_not_count_for_the_level():
    pause = np.zeros(RATE)
    sound = polish(np.concatenate([tone(0.5, 0.4), pause, tone(0.5, 0.4)]), RATE)
    assert rms(sound[1000:6000]) == pytest.approx(LEVEL, rel=0.02)
    assert len(sound) == pytest.approx(2 * RATE, abs=0.1 * RATE)


def test_silence_around_is_cut_but_not_all_of_it():
    sound = polish(np.concatenate([np.zeros(RATE), tone(1, 0.3), np.zeros(RATE)]), RATE)
    assert len(sound) == round((0.02 + 1 + 0.12) * RATE)  # what is loud fills whole frames
    assert np.flatnonzero(sound)[0] == pytest.approx(0.02 * RATE, abs=1)


def test_a_click_does_not_make_the_speech_soft_and_nothing_clips():
    """A single loud sample: the level is that of the speech, as far as the peak allows."""
    sound = tone(1, 0.05)
    sound[8000] = 1.0
    assert np.abs(polish(sound, RATE)).max() <= PEAK + 1e-6


def test_ends_are_soft():
    sound = polish(tone(1, 0.5, frequency=1234), RATE)
    assert sound[0] == sound[-1] == 0
    edge = round(0.005 * RATE)
    assert np.abs(sound[: edge // 4]).max() < 0.3 * np.abs(sound).max()


@given(arrays(np.float32, st.integers(0, 3000), elements=st.floats(-4, 4, width=32)))
def test_any_sound_comes_out_within_bounds(sound):
    out = polish(sound, RATE)
    assert np.isfinite(out).all()
    assert len(out) <= len(sound)
    assert np.abs(out).max(initial=0) <= PEAK + 1e-6


def test_broken_numbers_are_silence():
    sound = tone(1, 0.3)
    sound[500] = np.nan
    assert np.isfinite(polish(sound, RATE)).all()
    assert len(polish(np.zeros(5000), RATE)) == 0


def test_sentences_are_joined_with_a_pause_and_without_a_click():
    sound = join([polish(tone(0.5, 0.3, 777), RATE)] * 3, RATE)
    assert len(join([], RATE)) == 0
    # A sine of 777 Hz moves by no more than this from one sample to the next.
    steepest = 2 * np.pi * 777 / RATE * np.abs(sound).max()
    assert np.abs(np.diff(sound)).max() <= 1.1 * steepest
