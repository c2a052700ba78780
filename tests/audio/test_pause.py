"""A recording that is begun in the middle is begun where nobody speaks."""

import numpy as np
import pytest
import soundfile

from dragoman.audio.chunk import RATE
from dragoman.audio.pause import pause_near
from dragoman.audio.pcm import RawFormat, to_pcm16


@pytest.fixture
def speech():
    """Four seconds, silent from 1.6 to 1.9 s."""
    sound = np.random.default_rng(1).uniform(-0.3, 0.3, 4 * RATE).astype(np.float32)
    sound[int(1.6 * RATE) : int(1.9 * RATE)] *= 0.01
    return sound


@pytest.mark.parametrize("moment", [1.5, 1.8, 2.2])
def test_the_pause_is_found(speech, tmp_path, moment):
    soundfile.write(tmp_path / "a.wav", speech, RATE)
    assert 1.65 < pause_near(tmp_path / "a.wav", moment) < 1.85


def test_of_plain_samples_too(speech, tmp_path):
    (tmp_path / "a.pcm").write_bytes(to_pcm16(speech))
    assert 1.65 < pause_near(tmp_path / "a.pcm", 2.0, RawFormat()) < 1.85


def test_it_is_never_far(speech, tmp_path):
    soundfile.write(tmp_path / "a.wav", speech, RATE)
    assert pause_near(tmp_path / "a.wav", 3.0) == pytest.approx(3.0, abs=0.5)
    assert 0 < pause_near(tmp_path / "a.wav", 0.1) < 0.4
    assert pause_near(tmp_path / "a.wav", 4.4) == 4.4  # hardly anything is left there
