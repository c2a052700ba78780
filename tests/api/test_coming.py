"""Sound that comes asynchronously, and live: what comes while the model works."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import dragoman
from dragoman.clock import RealClock
from tests.api.talks import SETTINGS, WORDS, silence, text


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
