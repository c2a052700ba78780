"""The interpreter's voice over the socket: to the speaker, and to those who listen in a room."""

import asyncio
import io
import threading
import time

import numpy as np
import pytest
import soundfile

from dragoman.errors import DragomanError
from dragoman.serve import speech
from dragoman.serve.protocol import (
    Error,
    Interim,
    Ready,
    Resume,
    Said,
    Speak,
    Speech,
    Start,
    Summary,
)
from dragoman.serve.speech import KEPT, Earphone, encoded
from tests.serve.clients import PATH, Client, make_service
from tests.serve.guests import Listener, begin, finish, listens, open_room, speaks
from tests.serve.processes import in_time
from tests.talkers import TEXT
from tests.voices.fakes import ToneVoice


@pytest.fixture
def tone(monkeypatch):
    """A voice that hums, a hundredth of a second a letter."""
    voice = ToneVoice(0.01)
    monkeypatch.setattr(speech, "open_voice", lambda name, language: voice)
    return voice


class Hearer(Client):
    """A client that also takes sound."""

    sounds: list

    def __init__(self, socket):
        super().__init__(socket)
        self.sounds = []

    def next(self):
        event = super().next()
        if isinstance(event, Speech):
            self.sounds.append((event, self.socket.receive_bytes()))
        return event


class HearingListener(Hearer, Listener):
    pass


def wait_for(what):
    """Until something holds that another thread brings about."""
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until, threading.enumerate()
        time.sleep(0.01)


def spoken(tone):
    return " ".join(text for text, _ in tone.spoken)


@pytest.mark.parametrize("encoding", ["pcm16", "mp3"])
def test_a_talk_is_spoken_to_its_last_word(opened, tone, encoding):
    _, web = opened(model="tests.talkers:sentences")
    with web.websocket_connect(PATH) as socket:
        client = Hearer(socket)
        client.start(speech=encoding)
        finish(client, 40)
    assert spoken(tone) == TEXT
    events = [event for event, _ in client.sounds]
    assert [event.number for event in events] == list(range(1, len(tone.spoken) + 1))
    assert {event.encoding for event in events} == {encoding}
    for (event, sound), (text, speed) in zip(client.sounds, tone.spoken, strict=True):
        samples = ToneVoice(0.01).speak(text, speed)
        assert (event.rate, event.samples) == (24000, len(samples))
        heard = decoded(sound, encoding)
        assert len(heard) == len(samples)
        assert np.corrcoef(heard, samples)[0, 1] > 0.95
    ends = [event.at_ms + 1000 * event.samples / event.rate for event in events]
    assert all(after.at_ms >= end - 0.2 for after, end in zip(events[1:], ends, strict=False))
    assert isinstance(client.events[-1], Summary)  # and the sound came before it


def decoded(sound, encoding):
    if encoding == "pcm16":
        return np.frombuffer(sound, "<i2") / 32768
    return soundfile.read(io.BytesIO(sound))[0]


def test_what_is_beyond_full_scale_is_clipped_and_does_not_wrap():
    sound = encoded(np.array([0.0, 2.0, -2.0], np.float32), 24000)["pcm16"]
    assert np.frombuffer(sound, "<i2").tolist() == [0, 32767, -32768]


def test_without_a_wish_nothing_is_spoken(opened, tone):
    _, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Hearer(socket)
        client.start()
        finish(client)
    assert tone.spoken == client.sounds == []


def test_the_voice_is_turned_on_and_off_in_mid_talk(opened, tone):
    _, web = opened(model="tests.talkers:sentences")
    with web.websocket_connect(PATH) as socket:
        client = Hearer(socket)
        client.start()
        for _ in range(3):
            client.speak()
            client.until(Said)
        client.send(Speak("pcm16"))
        while not client.sounds:
            client.speak()
            client.until(Said)
        client.send(Speak(None))
        finish(client, 40)
    said = spoken(tone)
    assert said
    assert said in TEXT
    assert not TEXT.startswith(said)
    assert not TEXT.endswith(said)


@pytest.mark.parametrize("kind", [DragomanError, ImportError])
def test_a_missing_voice_is_told_and_the_talk_goes_on(opened, monkeypatch, kind):
    def refuse(name, language):
        raise kind("/secret/path is missing")

    monkeypatch.setattr(speech, "open_voice", refuse)
    _, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Hearer(socket)
        client.start(speech="mp3")
        summary = finish(client)
    (error,) = [event for event in client.events if isinstance(event, Error)]
    assert error.code == "voice"
    assert "English" in error.message
    assert "secret" not in error.message
    assert summary.words == 12


@pytest.fixture
def far(monkeypatch):
    """A voice that has to be fetched, which takes until this is set."""
    here, voice = threading.Event(), ToneVoice(0.01)

    def fetch(name, language):
        assert here.wait(60)
        return voice

    monkeypatch.setattr(speech, "open_voice", fetch)
    monkeypatch.setattr(speech, "AT_HAND", 0.05)
    yield here, voice
    here.set()


def test_nobody_waits_for_a_voice_that_has_to_be_fetched(opened, far):
    here, voice = far
    _, web = opened(model="tests.talkers:sentences")
    room = open_room(web)
    with listens(web, room) as ear, speaks(web, room) as mouth:
        listener = HearingListener(ear)
        listener.come_in(room, speech="mp3")
        speaker = Hearer(mouth)
        speaker.send(Start(access_token=room["speaker_token"], speech="mp3"))
        for _ in range(3):
            speaker.speak()
            speaker.until(Said)
        while not listener.words:
            listener.next()
        assert not speaker.sounds
        here.set()
        while not speaker.sounds:  # and from then on it is heard
            speaker.speak()
            speaker.until(Said | Speech)
        finish(speaker, 40)
        while not listener.sounds:
            listener.next()
    assert not TEXT.startswith(spoken(voice))
    assert TEXT.endswith(spoken(voice))


def test_who_hangs_up_before_the_voice_is_there_leaves_none_behind(opened, far):
    here, _ = far
    service, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Hearer(socket)
        session = service._sessions[client.start(speech="mp3").session]
    here.set()
    wait_for(lambda: session.client is None)
    wait_for(lambda: service.voices._opening["en"].done())
    assert session.voice is None


def test_a_process_that_ends_does_not_wait_for_a_voice_that_is_fetched(monkeypatch):
    here, fetching = threading.Event(), []

    def fetch(name, language):
        fetching.append(threading.current_thread())
        here.wait(20)
        raise OSError

    async def begin_and_end():
        asking = asyncio.create_task(speech.Voices(None).open("en"))
        while not fetching:
            await asyncio.sleep(0.01)
        asking.cancel()

    monkeypatch.setattr(speech, "open_voice", fetch)
    in_time(begin_and_end())
    assert fetching[0].is_alive()
    assert fetching[0].daemon
    here.set()
    fetching[0].join()


def test_a_voice_that_fails_is_told_once_and_the_talk_goes_on(opened, monkeypatch):
    voice = ToneVoice(0.01, fails_from=1)
    monkeypatch.setattr(speech, "open_voice", lambda name, language: voice)
    _, web = opened(model="tests.talkers:sentences")
    with web.websocket_connect(PATH) as socket:
        client = Hearer(socket)
        client.start(speech="mp3")
        finish(client, 40)
    assert [e.code for e in client.events if isinstance(e, Error)] == ["voice"]
    assert len(client.sounds) == 1
    assert "".join(e.text for e in client.events if isinstance(e, Said)).strip() == TEXT


def test_who_listens_to_talk_after_talk_is_told_of_each_whose_voice_fails(tone):
    async def told():
        service, codes = make_service(), []
        earphone = Earphone(service.voices)
        for _ in range(2):
            session = await service.start(Start())
            for _ in range(2):  # turned on once more, it is not told again
                await earphone.put_on(session, "mp3")
                session.voice._fail()
                codes += [earphone.fault(), earphone.fault()]
            earphone.take_off()
            session.fail()
        return [fault and fault.code for fault in codes]

    assert in_time(told()) == ["voice", None, None, None] * 2


def test_a_voice_that_hangs_does_not_hold_up_the_end(opened, monkeypatch):
    release = threading.Event()

    class Stuck(ToneVoice):
        def speak(self, text, speed=1.0):
            release.wait(60)
            return super().speak(text, speed)

    monkeypatch.setattr(speech, "open_voice", lambda name, language: Stuck())
    monkeypatch.setattr(speech, "LAST_PHRASES", 0.1)
    _, web = opened()
    try:
        with web.websocket_connect(PATH) as socket:
            client = Hearer(socket)
            client.start(speech="mp3")
            assert finish(client).words == 12
    finally:
        release.set()


def test_the_voice_is_put_on_again_after_a_lost_connection(opened, tone):
    _, web = opened(model="tests.talkers:sentences")
    with web.websocket_connect(PATH) as socket:
        client = Hearer(socket)
        ready = client.start(speech="pcm16")
        for _ in range(4):
            client.speak()
        client.until(Said)
    with web.websocket_connect(PATH) as socket:
        client.socket = socket
        client.send(Resume(ready.session, ready.resume_token))
        client.until(Ready)
        client.send(Speak("pcm16"))
        finish(client, 40)
    assert client.sounds
    assert TEXT.endswith(tone.spoken[-1][0])


def test_listeners_hear_and_readers_do_not(opened, tone):
    _, web = opened(model="tests.talkers:sentences")
    room = open_room(web)
    with (
        listens(web, room) as one,
        listens(web, room) as two,
        speaks(web, room) as mouth,
    ):
        hearer, reader = HearingListener(one), HearingListener(two)
        hearer.come_in(room, speech="mp3")
        reader.come_in(room)
        finish(begin(mouth, room), 40)
        hearer.until_told(Summary)
        reader.until_told(Summary)
        while sum(event.samples for event, _ in hearer.sounds) < 0.008 * 24000 * len(TEXT) / 1.35:
            hearer.next()
    assert spoken(tone) == TEXT  # once, however many listen
    assert reader.sounds == []
    assert len(hearer.sounds) == len(tone.spoken)


def test_a_listener_turns_the_sound_on_and_hears_from_then_on(opened, tone):
    service, web = opened(model="tests.talkers:sentences")
    room = open_room(web)
    with listens(web, room) as ear, speaks(web, room) as mouth:
        listener = HearingListener(ear)
        listener.come_in(room)
        speaker = begin(mouth, room)
        for _ in range(5):
            speaker.speak()
            speaker.until(Said)
        listener.send(Speak("mp3"))
        session = service.rooms.enter(room["room"]).session
        wait_for(lambda: session.voice)
        finish(speaker, 40)
        while not listener.sounds:
            listener.next()
    assert TEXT.endswith(spoken(tone))
    assert spoken(tone) != TEXT


def test_who_is_far_behind_hears_the_latest_alone(opened, tone):
    """Old sound is of no use to one who follows live, and is not kept."""
    service, web = opened()
    with web.websocket_connect(PATH) as socket:
        client = Hearer(socket)
        ready = client.start(speech="pcm16")
        session = service._sessions[ready.session]
        wait_for(lambda: session.voice)
        phrases = [({"pcm16": bytes(2), "mp3": b""}) for _ in range(3 * KEPT)]

        def air_all():
            for sounds in phrases:
                session.voice._air(1, sounds)

        session.voice._loop.call_soon_threadsafe(air_all)
        while len(client.sounds) < KEPT:
            client.next()
        finish(client)
    numbers = [event.number for event, _ in client.sounds[:KEPT]]
    assert numbers == list(range(2 * KEPT + 1, 3 * KEPT + 1))


def test_a_talk_that_has_ended_meanwhile_is_not_spoken_and_leaves_no_thread(tone):
    """Its voice may take longer to open than the talk to end."""

    async def put_on_late():
        service = make_service()
        session = await service.start(Start())
        session.stop()
        await service.scheduler._step(service.scheduler._due())
        earphone = Earphone(service.voices)
        await earphone.put_on(session, "pcm16")
        while earphone.waits:
            session.news.clear()
            await session.news.wait()

    before = set(threading.enumerate())
    in_time(put_on_late())
    assert tone.spoken == []
    wait_for(lambda: "speaker" not in {one.name for one in set(threading.enumerate()) - before})


def test_threads_end_with_their_talks(opened, tone):
    before = set(threading.enumerate())
    service, web = opened(keep=0.05)
    for _ in range(3):
        with web.websocket_connect(PATH) as socket:
            client = Hearer(socket)
            client.start(speech="pcm16")
            client.speak()
            client.until(Interim | Said)
        wait_for(lambda: tone.loaded)
    wait_for(lambda: not service._sessions)
    names = {"speaker", "last phrases"}
    wait_for(lambda: not names & {one.name for one in set(threading.enumerate()) - before})


def test_who_begins_to_listen_hears_what_is_spoken_from_then_on(tone):
    async def heard():
        service = make_service()
        session = await service.start(Start())
        first, second = Earphone(service.voices), Earphone(service.voices)
        await first.put_on(session, "pcm16")
        session.voice._air(2, {"pcm16": b"one!", "mp3": b""})
        await second.put_on(session, "pcm16")
        session.voice._air(2, {"pcm16": b"two!", "mp3": b""})
        told = [[sound for _, sound in one.fresh()] for one in (first, second)]
        session.fail()  # its voice ends with it
        return told

    assert in_time(heard()) == [[b"one!", b"two!"], [b"two!"]]
