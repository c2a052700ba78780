"""Faster speech: exactly as long as asked, at the same pitch, as loud, and in the same order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.audio.stretch import stretch

RATE = 24000
SPEEDS = [0.8, 1.1, 1.35, 2.0]


def voiced(seconds, pitch=120.0):
    """A buzz like a voice's: a pitch and its overtones."""
    time = np.arange(round(seconds * RATE)) / RATE
    return sum(np.sin(2 * np.pi * pitch * n * time) / n for n in range(1, 9)).astype(np.float32) / 4


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("pitch", [90.0, 220.0])
def test_the_pitch_stays(speed, pitch):
    sound = stretch(voiced(2.0, pitch), RATE, speed)
    inner = sound[RATE // 5 : -RATE // 5]
    spectrum = np.abs(np.fft.rfft(inner * np.hanning(len(inner)), 2**18))
    assert np.fft.rfftfreq(2**18, 1 / RATE)[spectrum.argmax()] == pytest.approx(pitch, rel=0.02)


@pytest.mark.parametrize("speed", SPEEDS)
def test_a_steady_voice_stays_steady(speed):
    """No dips and no clicks where pieces meet: the waves are in step."""
    source = voiced(2.0)
    sound = stretch(source, RATE, speed)[RATE // 10 : -RATE // 10]
    frames = sound[: len(sound) // 480 * 480].reshape(-1, 480)
    levels = np.sqrt((frames**2).mean(axis=1))
    assert levels.min() > 0.7 * levels.max()
    assert np.sqrt((sound**2).mean()) == pytest.approx(np.sqrt((source**2).mean()), rel=0.05)
    assert np.abs(np.diff(sound)).max() <= 1.5 * np.abs(np.diff(source)).max()


@pytest.mark.parametrize("speed", SPEEDS)
def test_what_comes_when_moves_with_the_speed(speed):
    sound = np.zeros(3 * RATE, np.float32)
    for second in (0.5, 1.5, 2.5):
        begin = round(second * RATE)
        sound[begin : begin + RATE // 10] = voiced(0.1)
    loud = np.flatnonzero(np.abs(stretch(sound, RATE, speed)) > 0.05) / RATE
    for second in (0.5, 1.5, 2.5):
        assert np.abs(loud - (second + 0.05) / speed).min() < 0.02
    for silent in (1.0, 2.0):
        assert np.abs(loud - silent / speed).min() > 0.35 / speed


@given(st.integers(0, 9000), st.floats(0.5, 3.0))
def test_it_is_as_long_as_asked_or_too_short_to_matter(length, speed):
    sound = stretch(np.ones(length, np.float32), RATE, speed)
    assert len(sound) in (length, round(length / speed))
    assert np.isfinite(sound).all()
    if length / speed > 2000 and abs(speed - 1) > 0.01:
        assert len(sound) == round(length / speed)


def test_at_its_own_speed_nothing_changes():
    sound = voiced(0.5)
    assert np.array_equal(stretch(sound, RATE, 1.0), sound)
