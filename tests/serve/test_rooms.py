"""Rooms: one speaks, many listen, and who comes late is told what was said."""

import asyncio
import json
import signal
import threading
from types import SimpleNamespace

import msgspec
import pytest

from dragoman.serve import listening, rooms, run, scheduler
from dragoman.serve.listening import Listening
from dragoman.serve.protocol import (
    Audience,
    Interim,
    Listen,
    Said,
    Start,
    Summary,
    Talk,
    Told,
    Transcript,
    write,
)
from dragoman.serve.protocol import Room as RoomEvent
from dragoman.serve.room_keys import new_room
from dragoman.serve.rooms import Room
from dragoman.serve.run import make_server
from tests.serve.clients import make_service, steady_words
from tests.serve.guests import TOKEN, Listener, attends, begin, finish, listens, open_room, speaks
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
