"""Rooms: one speaks, many listen, and who comes late is told what was said."""

import asyncio
import json
import signal
import threading
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from dragoman.serve import listening, rooms, run, scheduler
from dragoman.serve.listening import Listening
from dragoman.serve.protocol import (
    Audience,
    Code,
    Elsewhere,
    Error,
    Fault,
    Interim,
    Listen,
    Ready,
    Resume,
    Said,
    Start,
    Summary,
    Talk,
    Told,
    Transcript,
    write,
    write_sound,
)
from dragoman.serve.protocol import Room as RoomEvent
from dragoman.serve.room_keys import new_room
from dragoman.serve.rooms import Room
from dragoman.serve.run import make_server
from tests.serve.clients import Client, closed, make_service, steady_words
from tests.serve.guests import TOKEN, Listener, attends, begin, finish, listens, open_room, speaks
from tests.serve.numbers import sound_of, words_of
from tests.serve.processes import in_time


def test_a_listener_is_told_what_the_speaker_is(opened):
    _, web = opened(token=TOKEN)
    room = open_room(web, TOKEN)
    with listens(web, room) as ear, speaks(web, room) as mouth:
        listener = Listener(ear)
        assert listener.come_in(room).state == "waiting"
        speaker = begin(mouth, room, source="de", target="en")
        finish(speaker)
        listener.until_told(Summary)
    assert speaker.words == listener.words == steady_words()
    talk = listener.told[0]
    assert talk == Talk(1, "de", "en")
    said = [e for e in speaker.events if isinstance(e, Said)]
    assert [e for e in listener.told if isinstance(e, Said)] == said  # to the last figure
    states = [e.state for e in listener.events if isinstance(e, RoomEvent)]
    assert states[0] == "waiting"
    assert "listening" in states


def test_who_comes_late_sees_what_was_said(opened):
    _, web = opened(model="tests.talkers:bilingual")
    room = open_room(web)
    with speaks(web, room) as mouth:
        speaker = begin(mouth, room, transcript=True)
        finish(speaker, 40)
    with listens(web, room) as ear:
        listener = Listener(ear)
        assert listener.come_in(room).state == "over"
        listener.until_told(Summary)
    assert listener.words == speaker.words
    written = [e for e in speaker.events if isinstance(e, Transcript)]
    assert [e for e in listener.told if isinstance(e, Transcript)] == written


@pytest.mark.parametrize("had", [0, 1, 5, 12, 14])
def test_a_listener_who_comes_back_is_told_the_rest_alone(opened, had):
    _, web = opened()
    room = open_room(web)
    with speaks(web, room) as mouth:
        finish(begin(mouth, room))
    with listens(web, room) as ear:
        first = Listener(ear)
        log = first.come_in(room).log
        first.until_told(Summary)
    with listens(web, room) as ear:
        again = Listener(ear)
        again.come_in(room, log=log, next=had)
        if had < len(first.told):
            again.until_told(Summary)
        assert again.told == first.told[had:]
    with listens(web, room) as ear:  # so many were never told: all is told anew
        anew = Listener(ear)
        anew.come_in(room, log=log, next=len(first.told) + 1)
        anew.until_told(Summary)
    assert anew.told == first.told
    with listens(web, room) as ear:  # the log of another process: all is told anew
        anew = Listener(ear)
        anew.come_in(room, log="another", next=had)
        anew.until_told(Summary)
    assert anew.told == first.told


def test_long_talks_are_told_in_frames_of_bounded_size():
    room = Room("abcdefgh")
    room._entries = [write(Said(i + 1, f" word{i}", 0.0, 0.0, None)) for i in range(1000)]
    at, words, sizes = 0, [], []
    while at < room.next:
        text, at = room.frame(at)
        told = msgspec.json.decode(text, type=Told)
        assert told.next == at
        sizes.append(len(told.events))
        words += [said.word for said in told.events]
    assert words == list(range(1, 1001))
    assert sizes == [rooms.IN_A_FRAME, rooms.IN_A_FRAME, 1000 - 2 * rooms.IN_A_FRAME]


def test_what_was_forgotten_is_left_out():
    room = Room("abcdefgh")
    room._entries = [write(Said(i, "", 0.0, 0.0, None)) for i in range(50, 1050)]
    room._first = 50
    for start in (0, 20, 50):
        text, end = room.frame(start)
        words = [said.word for said in msgspec.json.decode(text, type=Told).events]
        assert words == list(range(50, 50 + rooms.IN_A_FRAME))
        assert end == 50 + rooms.IN_A_FRAME
    assert room.next == 1050


def test_the_end_is_told_once_while_the_last_phrases_are_spoken(opened):
    service, web = opened()
    room = open_room(web)
    with speaks(web, room) as mouth:
        finish(begin(mouth, room))
        (session,) = service._sessions.values()
        told = service.rooms.enter(room["room"])
        session.voice = SimpleNamespace(count=1, silent=False)
        told.session, told._summed_up = session, False
        before = told.next
        told.look()
        session.voice.count = 2
        told.look()
        assert told.next == before + 1
        assert told.session is session  # it is still heard
        session.voice.silent = True
        told.look()
        assert told.session is None


def test_a_room_forgets_the_talks_before_when_there_is_too_much(opened, monkeypatch):
    monkeypatch.setattr(rooms, "MOST_TOLD", 10)
    _, web = opened()
    room = open_room(web)
    for _ in range(2):
        with speaks(web, room) as mouth:
            finish(begin(mouth, room))
    with attends(web, room) as listener:
        listener.until_told(Summary)
    assert listener.told[0] == Talk(2, None, "en")
    assert listener.words == steady_words()


def test_a_second_talk_follows_the_first(opened):
    _, web = opened()
    room = open_room(web)
    with attends(web, room) as listener:
        for number in (1, 2):
            with speaks(web, room) as mouth:
                finish(begin(mouth, room))
            while sum(isinstance(one, Summary) for one in listener.told) < number:
                listener.next()
    assert [one.talk for one in listener.told if isinstance(one, Talk)] == [1, 2]
    assert listener.words == 2 * steady_words()


def test_interim_text_is_told_and_taken_away(opened):
    _, web = opened(model="tests.talkers:changing")
    room = open_room(web)
    with listens(web, room) as ear, speaks(web, room) as mouth:
        listener = Listener(ear)
        listener.come_in(room)
        speaker = begin(mouth, room, policy="local-agreement:n=2")
        finish(speaker, 3)
        listener.until_told(Summary)
        while not (isinstance(listener.events[-1], Interim) and not listener.events[-1].text):
            listener.next()
    shown = [e.text for e in listener.events if isinstance(e, Interim)]
    assert any("perhaps" in text for text in shown)


def test_the_speaker_is_told_how_many_listen(opened):
    _, web = opened()
    room = open_room(web)
    with speaks(web, room) as mouth:
        speaker = begin(mouth, room)
        with listens(web, room) as ear:
            Listener(ear).come_in(room)
            assert speaker.until(Audience).listeners == 1
            with listens(web, room) as other:
                Listener(other).come_in(room)
                assert speaker.until(Audience).listeners == 2
        while speaker.until(Audience).listeners:
            pass


def audience(web, room, token="speaker_token"):
    headers = {"Authorization": f"Bearer {room[token]}"}
    return web.get(f"/v1/rooms/{room['room']}/audience", headers=headers)


def test_how_many_listen_can_be_asked_before_and_after_a_talk(opened):
    service, web = opened()
    room = open_room(web)
    assert audience(web, room).json() == {"type": "audience", "listeners": 0}
    assert service.rooms.get(room["room"]) is None  # to ask makes no room
    assert audience(web, room, "listener_token").status_code == 401
    with attends(web, room) as listener:
        assert audience(web, room).json()["listeners"] == 1
        with speaks(web, room) as mouth:
            finish(begin(mouth, room))
        listener.until_state("over")
        assert audience(web, room).json()["listeners"] == 1


@pytest.fixture
def going_on(monkeypatch):
    """What is heard is dealt with once this is set."""
    may, step = threading.Event(), scheduler.step

    def wait(*args):
        assert may.wait(60)
        return step(*args)

    monkeypatch.setattr(scheduler, "step", wait)
    yield may
    may.set()


def test_listeners_are_told_that_the_rest_comes_once_the_speaker_has_ended(opened, going_on):
    _, web = opened()
    room = open_room(web)
    with attends(web, room) as listener:
        with speaks(web, room) as mouth:
            speaker = begin(mouth, room)
            speaker.speak()
            listener.until_state("listening")
            speaker.stop()
            listener.until_state("finishing")
        going_on.set()
        listener.until_state("over")
    states = [e.state for e in listener.events if isinstance(e, RoomEvent)]
    assert states == ["waiting", "listening", "finishing", "over"]  # nobody waits for the speaker


def test_a_room_is_no_longer_away_when_another_talk_has_begun(opened, going_on):
    """The rest of the talk before is told first, which may take its time."""
    _, web = opened(lanes=3)
    room = open_room(web)
    with attends(web, room) as listener:
        with speaks(web, room) as mouth:
            begin(mouth, room).speak()
            listener.until_state("listening")
        listener.until_state("away")
        with speaks(web, room) as mouth:
            speaker = begin(mouth, room)
            listener.until_state("listening")
            speaker.stop()
            listener.until_state("finishing")
            assert len([one for one in listener.told if isinstance(one, Talk)]) == 1
            going_on.set()
            listener.until_state("over")  # and by then all is told
    assert len([one for one in listener.told if isinstance(one, Summary)]) == 2


def test_listeners_are_told_that_the_speaker_is_away_and_back(opened):
    _, web = opened()
    room = open_room(web)
    with attends(web, room) as listener:
        with speaks(web, room) as mouth:
            speaker = begin(mouth, room)
            ready = speaker.events[0]
            listener.until_state("listening")
        listener.until_state("away")
        with speaks(web, room) as mouth:
            speaker.socket = mouth
            token = room["speaker_token"]
            speaker.send(Resume(ready.session, ready.resume_token, access_token=token))
            speaker.until(Ready)
            listener.until_state("listening")
            finish(speaker)
        listener.until_told(Summary)
    assert [one.talk for one in listener.told if isinstance(one, Talk)] == [1]
    assert listener.words == steady_words()


def test_a_talk_that_begins_anew_goes_on_for_its_listeners(opened):
    """The machine gave it up; its speaker comes back with what was said. Nothing is told twice."""
    service, web = opened(model="tests.serve.numbers:numbers")
    room = open_room(web)
    with attends(web, room) as listener:
        with speaks(web, room) as mouth:
            speaker = begin(mouth, room)
            mouth.send_bytes(write_sound(0, sound_of(0, 10)))
            while len(speaker.words) < 10:
                speaker.next()
            (session,) = service._sessions.values()
            web.portal.call(session.fail, Fault(Code.OVERLOADED, "Go on elsewhere."))
            assert closed(speaker) == 1013
        said = [event for event in speaker.events if isinstance(event, Said)]
        elsewhere = Elsewhere(Start(), 0, 0, 0, said)
        token = room["speaker_token"]
        with speaks(web, room) as mouth:
            again = Client(mouth)
            again.send(Resume(session.id, session.resume_token, 10, 0, 32000, elsewhere, token))
            assert again.until(Ready).sample == 0
            mouth.send_bytes(write_sound(0, sound_of(0, 20)))
            again.stop()
            again.until(Summary)
        listener.until_told(Summary)
    assert listener.words == speaker.words + again.words == words_of(20)
    assert [one for one in listener.told if isinstance(one, Talk)] == [Talk(1, None, "en")]


def test_words_that_its_speaker_never_got_are_taken_back(opened):
    """They come out in other words, and listeners and files have those of the speaker."""
    service, web = opened(model="tests.serve.numbers:numbers")
    room = open_room(web)
    with attends(web, room) as listener:
        with speaks(web, room) as mouth:
            speaker = begin(mouth, room)
            mouth.send_bytes(write_sound(0, sound_of(0, 10)))
            while len(speaker.words) < 10:
                speaker.next()
        listener.until_state("away")
        (session,) = service._sessions.values()
        web.portal.call(session.fail, Fault(Code.OVERLOADED, "Go on elsewhere."))
        said = [event for event in speaker.events if isinstance(event, Said)][:6]  # no more came
        elsewhere, token = Elsewhere(Start(), 0, 0, 0, said), room["speaker_token"]
        with speaks(web, room) as mouth:
            again = Client(mouth)
            again.send(Resume(session.id, session.resume_token, 6, 0, 32000, elsewhere, token))
            again.until(Ready)
            mouth.send_bytes(write_sound(0, np.concatenate([sound_of(0, 6), sound_of(100, 9)])))
            again.stop()
            again.until(Summary)
        assert closed(listener) == 1012  # and is told anew
    words = [*words_of(6), *((number - 93, f" {number}") for number in range(100, 109))]
    assert [(one.word, one.text) for one in said] + again.words == words
    with attends(web, room) as listener:
        listener.until_told(Summary)
    assert listener.words == words


def test_a_talk_that_is_forgotten_is_over_for_its_listeners(opened):
    service, web = opened(model="tests.talkers:changing", keep=0.05)
    room = open_room(web)
    with attends(web, room) as listener:
        with speaks(web, room) as mouth:
            begin(mouth, room, policy="local-agreement:n=2").speak()
            assert listener.until(Interim).text
        listener.until_state("over")
    shown = [event.text for event in listener.events if isinstance(event, Interim)]
    assert shown[-1] == ""  # nor is a guess left of it
    assert service.rooms.enter(room["room"]).empty


def test_a_new_talk_ends_one_whose_speaker_is_gone(opened):
    service, web = opened()
    room = open_room(web)
    with attends(web, room) as listener:
        with speaks(web, room) as mouth:
            lost = begin(mouth, room)
            lost.speak()
        listener.until_state("away")
        with speaks(web, room) as mouth:
            speaker = begin(mouth, room)
            old, new = service._sessions.values()
            assert old.stopped
            assert not new.stopped
            finish(speaker)
        second = len(listener.told)
        while not any(isinstance(one, Summary) for one in listener.told[second:]):
            listener.next()
            talks = [at for at, one in enumerate(listener.told) if isinstance(one, Talk)]
            second = talks[1] if len(talks) > 1 else len(listener.told)
        rest, said = ([one for one in part if isinstance(one, Said)]
                      for part in (listener.told[:second], listener.told[second:]))  # fmt: skip
    assert [one.text for one in rest] == [one.text for one in old.words]  # all that was heard
    assert len(rest) > 1
    assert [(one.word, one.text) for one in said] == steady_words()


def test_who_comes_back_for_the_end_of_a_talk_does_not_end_the_next_one(opened):
    """Another has begun in the room meanwhile, and goes on."""
    _, web = opened()
    room = open_room(web)
    with attends(web, room) as listener:
        with speaks(web, room) as mouth:
            lost = begin(mouth, room)
            lost.speak(4.8)
        listener.until_state("away")
        with speaks(web, room) as mouth, speaks(web, room) as other:
            speaker = begin(mouth, room)
            lost.socket, ready = other, lost.events[0]
            lost.send(Resume(ready.session, ready.resume_token, access_token=room["speaker_token"]))
            assert lost.until(Summary).words == 12
            assert closed(lost) == 1000
            assert finish(speaker).audio_ms == 5200
        while sum(isinstance(one, Summary) for one in listener.told) < 2:
            listener.next()
    assert speaker.words == steady_words()
    assert [one.talk for one in listener.told if isinstance(one, Talk)] == [1, 2]
    assert listener.words == 2 * steady_words()


def test_who_comes_from_elsewhere_does_not_end_the_talk_of_another(opened):
    """A talk that this process does not know cannot go on in a room in which somebody speaks."""
    service, web = opened(secret="a secret that processes share")
    room = open_room(web)
    session, token = "4c7467bce1f08be9", room["speaker_token"]
    with speaks(web, room) as mouth, speaks(web, room) as other:
        speaker, strange = begin(mouth, room), Client(other)
        resumed = service._tickets.make(session)
        elsewhere = Elsewhere(Start(), 0, 0)
        strange.send(Resume(session, resumed, elsewhere=elsewhere, access_token=token))
        assert strange.next().code == "taken"
        assert closed(strange) == 4409
        assert service.streams == 1
        assert finish(speaker).audio_ms == 5200


def test_only_one_speaks_at_a_time(opened):
    _, web = opened()
    room = open_room(web)
    with speaks(web, room) as mouth, speaks(web, room) as other:
        begin(mouth, room)
        second = Client(other)
        second.send(Start(access_token=room["speaker_token"]))
        assert second.next().code == "taken"
        assert closed(second) == 4409


def test_a_process_that_ends_waits_for_slow_listeners(monkeypatch):
    """Until they have been told all, but not for ever."""

    async def ticks():
        service = make_service()
        server = make_server(service)
        server.handle_exit(signal.SIGTERM, None)
        room = service.rooms.enter("abcdefgh")
        room.join("slow")
        room.join("quick")
        quiet = [await server.on_tick(1)]
        room._entries += ["one", "two"]
        for listener, at in (("quick", 2), ("slow", 1), ("slow", 2)):
            room.reached[listener] = at
            quiet.append(await server.on_tick(1))
        room._entries.append("three")
        monkeypatch.setattr(run, "_FLUSH", -1.0)
        return [*quiet, await server.on_tick(1)]

    assert in_time(ticks()) == [True, False, False, True, True]


def test_a_process_that_ends_waits_for_the_last_phrase():
    """Those who hear a room are told of the end of the text before that of the sound."""

    async def ticks():
        service = make_service()
        session = await service.start(Start())
        session.voice = SimpleNamespace(count=0, silent=False)
        service.rooms.enter("abcdefgh").follow(session)
        session.stop()
        await service.scheduler._step(service.scheduler._due())
        server = make_server(service)
        server.handle_exit(signal.SIGTERM, None)
        speaking = await server.on_tick(1)
        session.voice.silent = True
        session.news.set()
        return speaking, await server.on_tick(1)

    assert in_time(ticks()) == (False, True)


def test_two_who_begin_at_the_same_moment_do_not_both(opened):
    """The second comes while the talk of the first is opened; who failed before is in no way."""
    service, web = opened()
    room = open_room(web)
    with speaks(web, room) as mouth:
        failing = Client(mouth)
        failing.send(Start(access_token=room["speaker_token"], policy="nonsense"))
        assert failing.next().code == "policy"
    asked, go = threading.Event(), threading.Event()
    open_one = service._open

    def slowly(*args):
        asked.set()
        assert go.wait(30)
        return open_one(*args)

    service._open = slowly
    with speaks(web, room) as mouth, speaks(web, room) as other:
        first, second = Client(mouth), Client(other)
        first.send(Start(access_token=room["speaker_token"]))
        assert asked.wait(30)
        second.send(Start(access_token=room["speaker_token"]))
        refused = second.next()
        go.set()
        assert isinstance(refused, Error)
        assert refused.code == "taken"
        assert isinstance(first.next(), Ready)
        finish(first)
    assert first.words == steady_words()


def test_what_was_said_in_empty_rooms_does_not_pile_up(opened, monkeypatch):
    service, web = opened()
    monkeypatch.setattr(rooms, "MOST_KEPT", 30)
    made = [open_room(web) for _ in range(6)]
    with listens(web, made[0]) as ear:
        Listener(ear).come_in(made[0])
        for room in made:  # thirteen entries each: a talk begins, and has twelve words
            with speaks(web, room) as mouth:
                finish(begin(mouth, room), 12)
        kept = service.rooms._rooms
        assert sum(room.kept for room in kept.values()) <= 30 + 14  # and the newest
        assert made[0]["room"] in kept  # somebody is there
        assert made[-1]["room"] in kept
        assert made[1]["room"] not in kept


def test_empty_rooms_make_room_for_others(opened, monkeypatch):
    monkeypatch.setattr(rooms, "MOST_ROOMS", 3)
    service, web = opened()
    held = open_room(web)
    with listens(web, held) as ear:
        Listener(ear).come_in(held)
        for _ in range(10):
            service.rooms.enter(new_room())
        assert len(service.rooms._rooms) == 3
        assert held["room"] in service.rooms._rooms


def test_nothing_said_and_no_token_is_logged(opened, caplog):
    _, web = opened(token=TOKEN)
    with caplog.at_level("DEBUG", logger="dragoman"):
        room = open_room(web, TOKEN)
        with listens(web, room) as ear, speaks(web, room) as mouth:
            listener = Listener(ear)
            listener.come_in(room)
            finish(begin(mouth, room))
            listener.until_told(Summary)
    lines = json.dumps([vars(record) for record in caplog.records], default=str)
    assert room["room"] in lines
    for secret in (TOKEN, room["speaker_token"], room["listener_token"], "word3"):
        assert secret not in lines


class EndsMeanwhile:
    """A room whose talk ends while its listener is told of a guess."""

    log, session, interim, next = "a log", None, "guess", 0

    def __init__(self) -> None:
        self.state = "listening"
        self.reached: dict[object, int] = {}
        self.waits = 0
        self.pulse = SimpleNamespace(next=self)

    @property
    def event(self) -> RoomEvent:
        return RoomEvent("a room", self.log, self.state)

    @property
    def left(self) -> bool:
        return self.waits == 2

    async def wait(self) -> None:
        self.waits += 1

    def frame(self, at: int) -> tuple[str, int]:
        return "the last word", self.next

    def end(self) -> None:
        self.state, self.interim, self.next = "over", "", 1


def test_who_is_told_that_it_is_over_has_been_told_all():
    room, told = EndsMeanwhile(), []

    async def send(event) -> None:
        told.append(event)
        if event == Interim("guess"):
            room.end()

    async def nothing(*_) -> None:
        pass

    listening = Listening.__new__(Listening)
    listening._socket = SimpleNamespace(send_text=send)
    listening._send, listening._speak, listening._listen_on = send, nothing, nothing
    asyncio.run(listening._tell_room(room, Listen()))
    begun, over = (RoomEvent("a room", room.log, state) for state in ("listening", "over"))
    assert told == [begun, Interim("guess"), "the last word", Interim(""), over]


def test_who_is_told_nothing_is_told_how_it_goes(opened, monkeypatch):
    """Else nobody could tell a silent room from a dead line."""
    monkeypatch.setattr(listening, "REMIND", 0.05)
    _, web = opened(token=TOKEN)
    room = open_room(web, TOKEN)
    with listens(web, room) as ear:
        listener = Listener(ear)
        first = listener.come_in(room)
        assert [listener.next(), listener.next()] == [first, first]
        with speaks(web, room) as mouth:
            finish(begin(mouth, room))
            listener.until_told(Summary)
        assert listener.words == steady_words()
