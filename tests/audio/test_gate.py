from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.audio.gate import GateSettings, SpeechGate, Utterance
from dragoman.errors import DragomanError

W = 0.032
PROBABILITIES = st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.6, 1.0]), max_size=200)
SETTINGS = st.builds(
    GateSettings,
    min_speech=st.floats(0, 0.3),
    min_silence=st.floats(0.2, 0.6),
    pad=st.floats(0, 0.1),
)


def speech(*parts):
    """Windows from ('+', n) and ('-', n): n windows of speech or of silence."""
    return [1.0 if kind == "+" else 0.0 for kind, count in parts for _ in range(count)]


def heard(probabilities, settings=None):
    gate = SpeechGate(W, settings)
    return [*gate.hear(probabilities), *gate.finish()]


def test_one_utterance():
    (one,) = heard(speech(("-", 10), ("+", 20), ("-", 40)))
    assert one.start == pytest.approx(10 * W - 0.1)
    assert one.end == pytest.approx(30 * W + 0.1)


def test_a_short_pause_does_not_end_it_and_a_long_one_does():
    assert len(heard(speech(("+", 20), ("-", 10), ("+", 20), ("-", 20)))) == 1
    assert len(heard(speech(("+", 20), ("-", 17), ("+", 20), ("-", 20)))) == 2


def test_a_click_is_no_speech():
    assert heard(speech(("-", 10), ("+", 2), ("-", 20))) == []


def test_between_the_two_thresholds_nothing_changes():
    assert heard([0.4] * 50) == []
    (one,) = heard([1.0] * 10 + [0.4] * 50)
    assert one == Utterance(0.0, pytest.approx(60 * W))


def test_the_gate_while_it_hears():
    gate = SpeechGate(W)
    assert gate.hear(speech(("-", 10))) == []
    assert (gate.speaking, gate.started) == (False, None)
    assert gate.silence == pytest.approx(10 * W)
    gate.hear(speech(("+", 5)))
    assert gate.speaking
    assert gate.started == pytest.approx(10 * W - 0.1)
    assert gate.silence == 0
    assert gate.hear(speech(("-", 15))) == []
    assert gate.speaking
    assert len(gate.hear(speech(("-", 1)))) == 1
    assert not gate.speaking


@given(PROBABILITIES, SETTINGS)
def test_utterances_are_in_order_and_never_overlap(probabilities, settings):
    found = heard(probabilities, settings)
    total = len(probabilities) * W
    for one in found:
        assert 0 <= one.start < one.end <= total + 1e-9
        assert one.end - one.start >= min(settings.min_speech, total) - 1e-6
    for one, two in pairwise(found):
        assert two.start - one.end >= settings.min_silence - 2 * settings.pad - 1e-6


@given(PROBABILITIES, SETTINGS, st.integers(1, 20))
def test_pieces_give_what_the_whole_gives(probabilities, settings, size):
    gate = SpeechGate(W, settings)
    found = []
    for at in range(0, len(probabilities), size):
        found += gate.hear(probabilities[at : at + size])
    assert [*found, *gate.finish()] == heard(probabilities, settings)


@given(PROBABILITIES, SETTINGS)
def test_every_long_stretch_of_certain_speech_is_inside_an_utterance(probabilities, settings):
    found = heard(probabilities, settings)
    run = 0
    for index, probability in enumerate([*probabilities, 0.0]):
        if probability >= settings.on:
            run += 1
            continue
        if run and run * W >= settings.min_speech:
            start, end = (index - run) * W, index * W
            assert any(u.start <= start + 1e-9 and end <= u.end + 1e-9 for u in found)
        run = 0


@pytest.mark.parametrize(
    "how",
    [
        {"on": 0.3},
        {"off": 0.0},
        {"on": 1.0},
        {"min_speech": -1},
        {"pad": 0.3},
        {"on": float("nan")},
    ],
)
def test_settings_that_are_none(how):
    with pytest.raises(DragomanError, match="speech gate"):
        GateSettings(**how)


def test_speech_that_goes_on_is_heard_in_pieces_as_one_window_after_another():
    """The silence after it counts from its end, and a pause in it is forgotten."""
    told = [0.9] * 20 + [0.1] * 5 + [0.9] * 12 + [0.1] * 3
    whole, pieces = SpeechGate(0.032), SpeechGate(0.032)
    for probability in told:
        whole.hear([probability])
    for at in range(0, len(told), 4):
        pieces.hear(told[at : at + 4])
    assert vars(whole) == vars(pieces) | {"_settings": whole._settings}
    assert whole.silence == pytest.approx(3 * 0.032)
