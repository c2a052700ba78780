"""The Python interface of the README and of docs/api.md."""

import itertools
import threading

import numpy as np
import pytest
import soundfile

import dragoman
from dragoman.awake import Awake
from tests.api.talks import SECONDS, SETTINGS, WORDS, silence, text


def test_four_lines_of_python(tmp_path):
    soundfile.write(tmp_path / "talk.wav", silence(), 16000)
    assert text(dragoman.translate(tmp_path / "talk.wav", **SETTINGS)) == WORDS


def test_time_for_which_the_program_was_stopped_is_no_work(translator, monkeypatch):
    ticks = itertools.count()
    stopped = Awake(lambda: 3600.0 * next(ticks), lambda: 0.0)  # before every look for an hour
    monkeypatch.setattr("dragoman.api.awake", lambda: stopped)
    assert list(translator.translate(silence(), 16000))[-1].at_ms == 1000 * SECONDS


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_an_array_of_any_rate(translator, rate):
    events = list(translator.translate(silence(rate), rate))
    assert text(events) == WORDS
    assert events[-1].heard_ms == pytest.approx(1000 * SECONDS, abs=1)


@pytest.mark.parametrize("size", [1000, 7777, 200_000])
def test_pieces_of_any_size(translator, size):
    sound = silence(48000)
    pieces = (sound[at : at + size] for at in range(0, len(sound), size))
    events = list(translator.translate(pieces, 48000))
    assert text(events) == WORDS
    assert events[-1].heard_ms == pytest.approx(1000 * SECONDS, abs=1)


def test_words_come_while_the_pieces_do(translator):
    given = 0

    def pieces():
        nonlocal given
        for _ in range(10):
            given += 1
            yield silence(seconds=0.5)

    first = next(e for e in translator.translate(pieces()) if isinstance(e, dragoman.Said))
    assert first.text == " word0"
    assert given == 1


def test_callbacks_get_the_events_of_their_kind_when_they_happen(translator):
    said, everything = [], []
    with translator.talk() as talk:
        talk.on(dragoman.Said, lambda event: said.append(event.text))
        talk.on(dragoman.Event, everything.append)
        talk.hear(silence(seconds=1))
        assert said == [" word0", " word1"]
        talk.hear(silence(seconds=4))
    assert "".join(said).split() == WORDS
    assert isinstance(everything[-1], dragoman.End)


def test_one_model_is_loaded_for_all_talks(monkeypatch):
    loaded = []
    from tests import scripted

    steady = scripted.steady
    monkeypatch.setattr(scripted, "steady", lambda: loaded.append(1) or steady())
    translator = dragoman.Translator(**SETTINGS)
    heard = []

    def listen():
        heard.append(text(translator.translate(silence())))

    talks = [threading.Thread(target=listen) for _ in range(4)]
    for talk in talks:
        talk.start()
    for talk in talks:
        talk.join()
    assert loaded == [1]
    assert heard == [WORDS] * 4


def test_the_policy_may_change_while_a_talk_runs(translator):
    talk = translator.talk()
    talk.policy = "offline"
    assert text(talk.hear(silence(seconds=2))) == []
    talk.policy = "greedy"
    assert len(text(talk.hear(silence(seconds=1)))) == 7
    assert talk.policy == "greedy"
    with pytest.raises(dragoman.DragomanError, match="no policy 'gredy'"):
        talk.policy = "gredy"
    talk.policy = None  # as everywhere: no change
    assert talk.policy == "greedy"


def test_the_latency_may_change_while_a_talk_runs():
    with dragoman.Translator(**SETTINGS | {"step_ms": 2000.0}) as translator:
        talk = translator.talk()
        assert talk.hear(silence(seconds=1.5)) == []
        talk.set_max_latency(1.3)
        assert talk.policy.startswith("agreeatt:old=600")
        heard = [event.heard_ms for event in talk.hear(silence(seconds=3.5))]
        assert heard[0] <= 2000  # the new step is half a second
        rest = talk.finish()
        assert text(rest)[-1:] == WORDS[-1:]
        assert rest[-1].heard_ms == 5000  # what waited for a step is not lost


def test_the_rate_may_change_while_a_talk_runs(translator):
    talk = translator.talk()
    events = talk.hear(silence(8000, 2), 8000) + talk.hear(silence(48000, 3), 48000)
    events += talk.finish()
    assert text(events) == WORDS
    assert events[-1].heard_ms == pytest.approx(5000, abs=1)


def test_a_rate_that_cannot_be_costs_the_talk_nothing(translator):
    talk = translator.talk()
    events = talk.hear(silence(48000, 2), 48000)
    with pytest.raises(dragoman.DragomanError, match="has -5 samples a second"):
        talk.hear(silence(), -5)
    events += talk.hear(silence(48000, 3), 48000) + talk.finish()
    assert text(events) == WORDS
    assert events[-1].heard_ms == pytest.approx(5000, abs=1)


def test_an_error_in_a_callback_is_raised_when_all_was_heard_and_told(translator):
    told = []

    def fail(event):
        raise KeyError(event.text)

    talk = translator.talk().on(dragoman.Said, fail).on(dragoman.Event, told.append)
    with pytest.raises(KeyError, match="word0"):  # the first of them
        talk.hear(silence(seconds=4))
    assert text(told) == WORDS[:10]
    with pytest.raises(KeyError, match="word10"):
        talk.finish()
    assert text(told) == WORDS
    assert isinstance(told[-1], dragoman.End)
    assert talk.finish() == []


def test_the_latency_may_change_in_a_callback_and_all_sound_is_heard_in_its_order(monkeypatch):
    sound, heard = np.linspace(0, 1, 5 * 16000, dtype=np.float32), []
    with dragoman.Translator(**SETTINGS | {"step_ms": 2000.0}) as translator:
        talk = translator.talk()
        model_hear = translator._system.model.hear

        def hear(streams, sounds):
            heard.extend(one.samples for one in sounds)
            model_hear(streams, sounds)

        monkeypatch.setattr(translator._system.model, "hear", hear)
        talk.on(dragoman.Said, lambda event: talk.set_max_latency(2.0))
        talk.hear(sound[:24000])
        talk.set_max_latency(1.3)  # three steps are due at once
        for at in range(24000, len(sound), 5000):
            talk.hear(sound[at : at + 5000])
        talk.finish()
    assert np.array_equal(np.concatenate(heard), sound)
