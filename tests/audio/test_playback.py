import sys
import threading
import time

import numpy as np
import pytest

from dragoman.audio.chunk import RATE
from dragoman.audio.playback import Player
from dragoman.errors import DragomanError
from tests.audio.conftest import chirp
from tests.audio.fake_sounddevice import FakeSounddevice
from tests.stuck import failing_after


@pytest.fixture
def fake(monkeypatch):
    devices = [("Desk", 0, 2, (48000, 16000)), ("Old", 0, 2, (44100,))]
    fake = FakeSounddevice(devices)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


def sounded(fake):
    """What was played, without the silence before and after."""
    everything = np.concatenate(fake.played)
    assert np.isfinite(everything).all()
    return np.trim_zeros(everything)


def test_blocks_follow_each_other_without_a_gap(fake):
    voice = chirp(2.0) + np.float32(0.1)
    with Player() as player:
        for block in np.array_split(voice, 5):
            assert player.play(block)
    assert np.array_equal(sounded(fake), voice)
    assert fake.streams[0].closed


def test_a_loudspeaker_of_another_rate(fake):
    with Player(RATE, "Old") as player:
        assert player.play(chirp(1.0))
    assert fake.streams[0].how["samplerate"] == 44100
    assert len(sounded(fake)) == pytest.approx(44100, abs=50)


def test_the_driver_does_not_wait_for_sound_that_is_resampled(fake, monkeypatch):
    """What was said before is still being played."""

    def slowly(samples, rate, to):
        asked = len(fake.played)
        while len(fake.played) < asked + 3:
            time.sleep(0.001)
        return samples

    monkeypatch.setattr("dragoman.audio.playback.resample", slowly)
    with failing_after(30), Player() as player:
        assert player.play(chirp(0.5))
    assert np.array_equal(sounded(fake), np.trim_zeros(chirp(0.5)))


def test_what_is_stopped_while_it_is_resampled_is_not_played(fake, monkeypatch):
    player = Player()

    def stopped(samples, rate, to):
        player.stop()
        return samples

    monkeypatch.setattr("dragoman.audio.playback.resample", stopped)
    with failing_after(30):
        assert not player.play(np.ones(RATE, np.float32))
    assert not player._waiting
    player.close()


def test_stop_is_at_once(fake):
    player = Player()
    answers = []
    speaker = threading.Thread(target=lambda: answers.append(player.play(np.ones(RATE * 600))))
    speaker.start()
    while not player._waiting or not fake.played:
        time.sleep(0.001)
    player.stop()
    speaker.join()
    assert answers == [False]
    count = len(fake.played)
    while len(fake.played) < count + 5:
        time.sleep(0.001)
    assert not np.concatenate(fake.played[count + 1 :]).any()
    assert player.play(np.ones(100, np.float32))
    player.close()


def test_pulled_out_while_it_plays(fake):
    player = Player(patience=0.1)
    fake.dead.set()
    with pytest.raises(DragomanError, match="'Desk' is gone"):
        player.play(chirp(2.0))


def test_a_busy_loudspeaker(fake):
    fake.busy = True
    with pytest.raises(DragomanError, match="'Desk' cannot be opened"):
        Player()


def test_a_loudspeaker_that_does_not_start_is_given_back(fake):
    fake.stuck = True
    with pytest.raises(DragomanError, match="'Desk' cannot be opened"):
        Player()
    assert fake.streams[0].closed


def test_an_error_leaves_at_once(fake):
    def fail():
        with Player() as player:
            player.play(chirp(0.1))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert fake.streams[0].closed
