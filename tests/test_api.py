"""The Python interface of the README and of docs/api.md."""

import asyncio
import itertools
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import soundfile

import dragoman
from dragoman.audio.arrays import frames_of
from dragoman.awake import Awake
from dragoman.clock import RealClock
from dragoman.events import Events
from dragoman.interpreter import Update
from dragoman.trace import Hearing
from tests.serve.numbers import sound_of

WORDS = [f"word{i}" for i in range(12)]
SETTINGS = {"source": "de", "model": "tests.scripted:steady", "policy": "greedy", "step_ms": 500.0}
SECONDS = 5


def text(events):
    return "".join(event.text for event in events if isinstance(event, dragoman.Said)).split()


@pytest.fixture
def translator():
    with dragoman.Translator(**SETTINGS) as translator:
        yield translator


def silence(rate=16000, seconds=SECONDS):
    return np.zeros(round(rate * seconds), np.float32)


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


def test_pieces_that_come_asynchronously(translator):
    async def pieces():
        for _ in range(10):
            await asyncio.sleep(0)
            yield silence(seconds=0.5)

    async def listen():
        return [event async for event in translator.translate_async(pieces())]

    events = asyncio.run(listen())
    assert text(events) == WORDS
    assert isinstance(events[-1], dragoman.End)


def test_the_loop_goes_on_while_the_model_works():
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def listen():
        async def pieces():
            yield silence(seconds=0.5)

        beside = asyncio.create_task(tick())
        with dragoman.Translator(**SETTINGS | {"model": "tests.talkers:slow"}) as slow:
            async for _ in slow.translate_async(pieces()):
                pass
        beside.cancel()

    asyncio.run(listen())
    assert ticks > 20  # in two steps of 1.2 s


def test_a_speaker_who_is_faster_than_the_model_is_caught_up_with(translator, monkeypatch):
    """As with a microphone: what comes while the model works is heard at once, 5 s at most."""
    chunks, come, model = [], threading.Event(), translator._system.model
    model_hear = model.hear

    def hear(streams, sounds):
        chunks.append(len(sounds[0].samples) / 16000)
        assert come.wait(60)
        model_hear(streams, sounds)

    async def pieces():
        yield silence(seconds=0.5)
        while not chunks:  # until the model works
            await asyncio.sleep(0.01)
        for _ in range(40):
            yield silence(seconds=0.15)
        come.set()

    async def listen():
        return [event async for event in translator.translate_async(pieces())]

    monkeypatch.setattr("dragoman.api.AHEAD", 100.0)  # this one speaks faster than anybody
    monkeypatch.setattr(model, "hear", hear)
    assert text(asyncio.run(listen())) == WORDS
    assert chunks == [0.5, 5.0, 1.0, 0.0]


def test_what_waits_for_another_talk_is_behind_the_speaker(translator):
    talk = translator.talk(live=True)
    with ThreadPoolExecutor(1) as thread:
        with translator._work:  # as another talk has it
            heard = thread.submit(talk.hear, silence(seconds=0.5))
            while talk._began is None:
                time.sleep(0.01)
            time.sleep(0.5)
        (said,) = heard.result()
    assert said.text == " word0"
    assert said.lag_ms >= 500


def test_a_recording_that_comes_as_fast_as_it_can_is_taken_step_by_step(translator, monkeypatch):
    """Its sender is no speaker whom nobody keeps up with."""

    async def pieces():
        for _ in range(50):
            yield silence(seconds=0.1)

    async def listen():
        return [event async for event in translator.translate_async(pieces())]

    monkeypatch.setattr("dragoman.api.RealClock", lambda: RealClock(lambda: 0.0))  # no time passes
    heard = {event.heard_ms for event in asyncio.run(listen())}
    assert heard >= set(range(500, 5001, 500))


def test_pieces_are_not_taken_without_end(translator):
    taken = 0

    async def pieces():
        nonlocal taken
        while True:
            taken += 1
            yield silence(seconds=10)

    async def listen():
        talk = translator.translate_async(pieces())
        async for _ in talk:
            break
        await asyncio.sleep(0.1)
        await talk.aclose()
        count = taken
        await asyncio.sleep(0.1)
        return count

    assert asyncio.run(listen()) == taken < 20  # a minute waits while a minute is heard


def test_what_goes_wrong_with_the_pieces_is_told_when_those_before_were_heard(translator):
    async def pieces(wrong):
        yield silence(seconds=5)
        yield wrong()

    async def listen(wrong, events):
        async for event in translator.translate_async(pieces(wrong)):
            events.append(event)

    def lost():
        raise ConnectionResetError("the speaker is gone")

    for wrong, error in (lost, ConnectionResetError), (lambda: b"bytes", dragoman.DragomanError):
        events = []
        with pytest.raises(error):
            asyncio.run(listen(wrong, events))
        assert text(events)[:10] == WORDS[:10]


def test_talks_take_no_thread_of_the_event_loop(translator):
    """Whoever waits for the model would else keep others from looking up a name."""
    taken = []

    class Threads(ThreadPoolExecutor):
        def submit(self, work, /, *args, **kwargs):
            taken.append(work)
            return super().submit(work, *args, **kwargs)

    async def listen():
        async def pieces():
            yield silence(seconds=0.5)

        asyncio.get_running_loop().set_default_executor(Threads())
        return [event async for event in translator.translate_async(pieces())]

    assert isinstance(asyncio.run(listen())[-1], dragoman.End)
    assert taken == []


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


def test_events_are_typed_frozen_and_of_one_family(translator):
    events = list(translator.translate(silence()))
    assert {type(event) for event in events} <= {
        dragoman.Said, dragoman.Interim, dragoman.Transcript, dragoman.Pause, dragoman.End
    }  # fmt: skip
    assert all(isinstance(event, dragoman.Event) for event in events)
    assert [type(event) for event in events].count(dragoman.End) == 1
    with pytest.raises(AttributeError):
        events[0].text = "other"
    times = [event.heard_ms for event in events]
    assert times == sorted(times)
    assert all(event.lag_ms >= 0 for event in events if isinstance(event, dragoman.Said))


def test_interim_text_is_told_when_it_changes_and_when_it_is_gone():
    settings = SETTINGS | {"model": "tests.scripted:sentence", "policy": "local-agreement:n=2"}
    events = list(dragoman.translate(silence(), **settings))
    interim = [event.text for event in events if isinstance(event, dragoman.Interim)]
    assert interim[0] == " word0"
    assert interim[-1] == ""
    assert all(one != other for one, other in pairwise(interim))


def events_of(*updates):
    """The events of updates, one a second, that differ from an empty one."""
    events = Events()
    return [
        event
        for second, changes in enumerate(updates, 1)
        for event in events.of(
            Update(**{"said": (), "interim": "", "hearing": at(1000 * second)} | changes), False
        )
    ]


def at(ms):
    return Hearing(ms, ms, ms, ms + 100)


def test_a_pause_is_told_once_and_not_before_the_first_word():
    silences = (1500, 2500, 0, 500, 900, 1900, 0, 1000)
    pauses = events_of(*({"silence_ms": float(ms)} for ms in silences))
    assert all(isinstance(event, dragoman.Pause) for event in pauses)
    assert [(event.heard_ms, event.silence_ms) for event in pauses] == [(5000, 900), (8000, 1000)]


def test_one_update_leads_to_events_in_their_order():
    events = events_of(
        {"transcript": (" Guten", " Tag"), "language": "de", "said": (" Good", " day"),
         "interim": " then", "lag_ms": 400.0},
    )  # fmt: skip
    assert events == [
        dragoman.Transcript(1000, 1100, " Guten Tag", "de"),
        dragoman.Said(1000, 1100, " Good day", 500.0),
        dragoman.Interim(1000, 1100, " then"),
    ]


def test_the_words_of_the_speaker_are_told_where_they_are_wanted():
    settings = SETTINGS | {"model": "tests.talkers:bilingual"}
    wanted = list(dragoman.translate(silence(), transcript=True, **settings))
    spoken = [event.text for event in wanted if isinstance(event, dragoman.Transcript)]
    assert "".join(spoken).split()[:3] == ["Dies", "ist", "der"]
    plain = dragoman.translate(silence(), **settings)
    assert not any(isinstance(event, dragoman.Transcript) for event in plain)


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


def test_what_is_closed_says_so(translator):
    talk = translator.talk()
    talk.finish()
    assert talk.finish() == []
    with pytest.raises(dragoman.DragomanError, match="This talk is over"):
        talk.hear(silence())
    translator.close()
    translator.close()
    with pytest.raises(dragoman.DragomanError, match="This translator is closed"):
        translator.talk()


def workers():
    return [one for one in threading.enumerate() if one.name.startswith("dragoman")]


def assert_gone(threads):
    for one in threads:
        one.join(60)  # that end by themselves, which may take a moment
    assert not any(one.is_alive() for one in threads)


def test_nothing_is_left_of_a_translator_that_was_closed():
    """Not even where it is closed in the middle of a talk, which goes on to its end."""

    async def listen(translator):
        async def pieces():
            for number in range(10):
                if number == 5:
                    translator.close()
                yield silence(seconds=0.5)

        return [event async for event in translator.translate_async(pieces())]

    before = workers()
    assert text(asyncio.run(listen(dragoman.Translator(**SETTINGS)))) == WORDS
    assert_gone(set(workers()) - set(before))


def test_a_talk_that_is_cancelled_leaves_nothing_of_a_closed_translator():
    async def main():
        async def pieces():
            yield silence(seconds=0.5)
            await asyncio.Event().wait()

        async def listen():
            async for _ in translator.translate_async(pieces()):
                heard.set()

        heard = asyncio.Event()
        with dragoman.Translator(**SETTINGS) as translator:
            listening = asyncio.create_task(listen())
            await heard.wait()
        listening.cancel()
        await asyncio.wait([listening])

    before = workers()
    asyncio.run(main())
    assert_gone(set(workers()) - set(before))


FORKED = """
import asyncio, os, numpy, dragoman

async def pieces():
    yield numpy.zeros(80000, numpy.float32)

async def listen():
    return [event async for event in translator.translate_async(pieces())]

translator = dragoman.Translator(source="de", model="tests.scripted:steady", policy="greedy")
told = [len(asyncio.run(listen()))]
translator._work.acquire()  # as a talk on a thread might have it
child = os.fork()
translator._work.release() if child else None
told += [len(asyncio.run(listen())), len(list(translator.translate(numpy.zeros(80000))))]
os.write(1, f"{told};".encode())
os.waitpid(child, 0) if child else os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without it")
def test_a_model_that_was_loaded_before_a_fork_serves_both_processes():
    """As servers do that load a program once, try it, and fork their workers off."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=100
    )
    assert done.stderr == ""
    assert done.stdout == "[11, 11, 11];" * 2


def test_an_error_leaves_the_rest_unsaid(translator):
    talk = translator.talk().on(dragoman.End, lambda event: pytest.fail("it was finished"))
    with pytest.raises(KeyError), talk:
        raise KeyError


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"modle": "whisper-base"}, "There is no setting 'modle'. Did you mean 'model'?"),
        ({"policy": "greedy", "max_latency": 1.0}, "give it or policy, not both"),
        ({"max_latency": 0.1}, "No policy is tuned for less"),
        ({"step_ms": 1.0}, "A step is 40 to 60000 ms long, not 1"),
        ({"threads": -3}, "A model has 0 (all) to 256 threads, not -3"),
        ({"beams": 0}, "A search follows 1 to 64 beams, not 0"),
        ({"beams": "5"}, "The setting beams='5' is not possible: Expected `int`, got `str`"),
        ({"policy": print}, "The setting policy=<built-in function print> is not possible"),
        ({"device": "gpu"}, "The setting device='gpu' is not possible"),
        ({"max_latency": "2s"}, "A latency is a number of seconds above 0, not '2s'"),
        ({"max_latency": 0}, "A latency is a number of seconds above 0, not 0"),
        ({"max_latency": 2000}, "A latency is in seconds: for 2000 ms write 2."),
        ({"source": "Klingonese"}, "'Klingonese' is not a language"),
    ],
)
def test_mistakes_are_sentences(settings, sentence):
    import re

    with pytest.raises(dragoman.DragomanError, match=re.escape(sentence)):
        dragoman.Translator(**{"model": "tests.scripted:steady"} | settings)


@pytest.mark.parametrize("wrong", ["best.yaml", {"source": "de"}])
def test_a_setup_is_one(wrong):
    with pytest.raises(dragoman.DragomanError, match=r"not (str|dict); Setup\.read\(PATH\) reads"):
        dragoman.Translator(wrong)


def test_what_sound_may_be():
    ramp = np.array([-32768, 0, 16384], np.int16)
    assert frames_of(ramp).tolist() == [[-1.0], [0.0], [0.5]]
    assert frames_of(np.array([0, 128, 255], np.uint8)).tolist() == [[-1.0], [0.0], [127 / 128]]
    assert frames_of(np.stack([ramp, ramp], axis=1)).tolist() == [[-1, -1], [0, 0], [0.5, 0.5]]
    assert frames_of(np.array([0.25], np.float64)).dtype == np.float32
    for sound, sentence in (
        (np.zeros((2, 2, 2)), "the shape"),
        (np.zeros((3, 0)), "the shape"),
        (b"\0\0", "numpy.frombuffer"),
        (bytearray(2), "numpy.frombuffer"),
        (np.array([0.0, np.nan]), "no numbers"),
        (np.array(["a"]), "floats, integers with a sign or uint8, not <U1"),
        (np.zeros(3, np.uint16), "not uint16"),
        (np.ones(3, np.int64), r"int64.* sound\.astype\('int16'\)"),
        (np.zeros((2, 16000)), r"would have 16000 channels; .* sound\.T"),
        (np.array([0.0, -3000.0]), "lies between -1 and 1; this reaches 3000"),
    ):
        with pytest.raises(dragoman.DragomanError, match=sentence):
            frames_of(sound)
    with pytest.raises(dragoman.DragomanError, match="samples a second"):
        next(dragoman.translate(silence(), rate=3, **SETTINGS))


@pytest.mark.parametrize("size", [320, 200_000])
def test_channels_that_cancel_each_other_are_heard_as_those_of_a_file_are(size):
    """From piece to piece, and from one number of channels to another."""
    sound = sound_of(0, 10)
    three = np.stack([0 * sound, 0 * sound, sound], axis=1)
    two = np.stack([sound_of(10, 10), -0.9 * sound_of(10, 10)], axis=1)
    three[:, 0] = -0.9 * three[:, 2]
    whole = [one[at : at + size] for one in (three, two) for at in range(0, len(one), size)]
    settings = {"model": "tests.serve.numbers:numbers", "policy": "greedy", "source": "de"}
    with dragoman.Translator(**settings) as translator:
        assert text(translator.translate(whole)) == [str(number) for number in range(20)]


def test_what_is_no_sound_is_a_sentence(translator):
    async def pieces():
        yield silence()

    async def listen(sound):
        return [event async for event in translator.translate_async(sound)]

    for wrong in (None, 5, pieces()):
        with pytest.raises(dragoman.DragomanError, match=r"Sound is the name of a file.* not "):
            translator.translate(wrong)
    with pytest.raises(dragoman.DragomanError, match="takes what comes asynchronously, not list"):
        asyncio.run(listen([silence()]))
    with pytest.raises(dragoman.DragomanError, match="has '16000' samples a second"):
        translator.translate(silence(), "16000")


def test_languages_are_named_as_on_the_command_line():
    with dragoman.Translator(**SETTINGS | {"source": "German", "target": "EN"}) as translator:
        assert (translator.setup.source, translator.setup.target) == ("de", "en")


def test_calls_are_for_events(translator):
    with pytest.raises(dragoman.DragomanError, match="5 cannot be called"):
        translator.talk().on(dragoman.Said, 5)
    with pytest.raises(dragoman.DragomanError, match="is no kind of event"):
        translator.talk().on(str, print)


def test_a_policy_that_is_refused_changes_nothing(translator):
    talk = translator.talk()
    for wrong in ("gredy", print):
        with pytest.raises(dragoman.DragomanError):
            talk.policy = wrong
    assert talk.policy == "greedy"
    with pytest.raises(dragoman.DragomanError, match="a number of seconds"):
        talk.set_max_latency("1.3")


def test_a_notebook_offers_every_name():
    assert set(dragoman.__all__) <= set(dir(dragoman))


def test_importing_it_is_light():
    code = "import dragoman, sys; print('numpy' in sys.modules, dragoman.Said.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "Said"]
