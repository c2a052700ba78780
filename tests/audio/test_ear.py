"""An ear makes a voice of probabilities; several of them listen together."""

import numpy as np
import pytest

from dragoman.audio.ear import SPEECH, Ear, Voice, listen, prepare
from dragoman.audio.vad import WINDOW, VadStream

SOUND = np.zeros(8, np.float32)


class Told:
    """The probability of speech, as it is told."""

    def __init__(self, *told) -> None:
        self._left = iter(told)

    def hear(self, samples):
        return np.float32(next(self._left))


def test_a_voice_speaks_until_it_has_paused_for_half_a_second():
    """A window is 32 ms; sixteen of them are a pause."""
    ear = Ear(Told([0.9] * 3, [0.9] * 7, [0.0] * 10, [0.0] * 10, [0.0], []))
    assert ear.hear(SOUND) == Voice(spoken=False, speaking=False, silence_ms=0.0)  # a click
    assert ear.hear(SOUND) == Voice(spoken=True, speaking=True, silence_ms=0.0)
    assert ear.hear(SOUND) == Voice(spoken=True, speaking=True, silence_ms=pytest.approx(320.0))
    assert ear.hear(SOUND) == Voice(spoken=True, speaking=False, silence_ms=pytest.approx(640.0))
    assert ear.hear(SOUND) == Voice(spoken=False, speaking=False, silence_ms=pytest.approx(672.0))
    assert ear.hear(SOUND) == Voice(spoken=False, speaking=False, silence_ms=pytest.approx(672.0))


class Levels:
    """A network that takes a level for a probability; notes whom it heard together."""

    def __init__(self) -> None:
        self.together = []

    def hear(self, streams, windows):
        self.together.append(streams)
        return [one[:, -1] for one in windows]


def windows(count: int, level: float) -> np.ndarray:
    return np.full(count * WINDOW, level, np.float32)


def test_each_network_hears_its_own_speakers_together():
    networks = Levels(), Levels()
    streams = [VadStream(networks[number]) for number in (0, 1, 0)]
    one, other, third = map(Ear, streams)
    pieces = [
        prepare(one, windows(10, 0.9)),
        prepare(Ear(Told([0.0] * 5)), SOUND),  # hears for itself
        prepare(other, windows(3, 0.9)),
        prepare(None, SOUND),
        prepare(third, windows(20, 0.0)),
    ]
    assert listen(pieces) == [
        Voice(True, True, 0.0),
        Voice(False, False, pytest.approx(160.0)),
        Voice(False, False, 0.0),
        SPEECH,
        Voice(False, False, pytest.approx(640.0)),
    ]
    assert networks[0].together == [[streams[0], streams[2]]]
    assert networks[1].together == [[streams[1]]]
    assert one.hear(windows(1, 0.0)) == Voice(True, True, pytest.approx(32.0))  # and goes on


def test_an_ear_of_another_kind_hears_for_itself():
    class Own:
        def hear(self, samples):
            return Voice(False, False, float(len(samples)))

    assert prepare(Own(), SOUND) == Voice(False, False, 8.0)


def test_where_nobody_listens_all_sound_may_be_speech():
    assert Voice(spoken=True, speaking=True, silence_ms=0.0) == SPEECH
    assert listen([]) == []
