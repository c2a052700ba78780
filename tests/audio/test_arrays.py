"""Arrays that a program holds become samples, or are told to be none."""

import numpy as np
import pytest

from dragoman.audio.arrays import LOUDEST, MOST_CHANNELS, frames_of
from dragoman.audio.mono import Mono
from dragoman.errors import DragomanError


@pytest.mark.parametrize(
    ("sound", "samples"),
    [
        (np.array([0.5, -1.0]), [0.5, -1.0]),
        (np.array([16384, -32768], np.int16), [0.5, -1.0]),
        (np.array([2**30, -(2**31)], np.int32), [0.5, -1.0]),
        (np.array([192, 128, 0], np.uint8), [0.5, 0.0, -1.0]),
        (np.array([[0.5, 0.0], [-1.0, 0.0]]), [0.25, -0.5]),
        (np.array([[32767, 32767]], np.int16), [32767 / 32768]),  # whose sum is no number of theirs
        (np.zeros((3, MOST_CHANNELS)), [0.0] * 3),
        (np.array([LOUDEST]), [LOUDEST]),
        ([], []),
    ],
)
def test_what_is_sound_becomes_samples(sound, samples):
    found = Mono(16000).of(frames_of(sound))
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx(samples)


@pytest.mark.parametrize(
    ("sound", "told"),
    [
        (np.zeros((3, MOST_CHANNELS + 1)), "would have 65 channels; .*sound.T"),
        (np.zeros((3, 0)), r"not \(3, 0\)"),
        (np.zeros((1, 1, 1)), r"not \(1, 1, 1\)"),
        (np.float32(0), r"not \(\)"),
        (np.array([0.0, np.nan]), "no numbers"),
        (np.array([0.0, -np.inf]), "no numbers"),
        (np.array([0.0, -1.1 * LOUDEST]), "this reaches 33"),
        (b"\0\0", "Bytes are samples of some kind"),
        (bytearray(2), "Bytes are samples of some kind"),
        (memoryview(b"\0\0"), "Bytes are samples of some kind"),
    ],
)
def test_what_is_no_sound_is_told(sound, told):
    with pytest.raises(DragomanError, match=told):
        Mono(16000).of(frames_of(sound))
