"""Which talk a room tells, in which order, and whose it is: by hand, without a socket."""

from types import SimpleNamespace

import msgspec
import pytest

from dragoman.serve import rooms
from dragoman.serve.bell import Bell
from dragoman.serve.doors import RoomDoor
from dragoman.serve.protocol import Fault, Resume, Said, Start, Summary, Told, Transcript
from dragoman.serve.rooms import Room, Rooms
from dragoman.serve.settings import Settings
from dragoman.setup import Setup
from tests.serve.processes import in_time

SETUP = Setup(model="x", source="de", target="en", policy="greedy")


class Session:
    """What a room asks of a talk."""

    state = "listening"

    def __init__(self, name, words=0):
        self.id, self.setup = name, SETUP
        self.news, self.voice, self.client, self.interim = Bell(), None, object(), ""
        self.words, self.transcripts = [], []
        self.summary, self.fault, self.stopped, self.audience = None, None, False, 0
        self.say(words)

    @property
    def finished(self):
        return self.summary is not None or self.fault is not None

    @property
    def last_word(self):
        return len(self.words)

    @property
    def last_transcript(self):
        return len(self.transcripts)

    def words_after(self, number):
        return self.words[number:]

    def transcripts_after(self, number):
        return self.transcripts[number:]

    def say(self, count=1):
        for _ in range(count):
            number = len(self.words) + 1
            self.words.append(Said(number, f" {self.id}{number}", 0.0, 0.0, None, 1.0))
        self.news.set()

    def write_down(self):
        self.transcripts.append(Transcript(len(self.transcripts) + 1, " x", 0.0, "de"))
        self.news.set()

    def stop(self):
        self.stopped = True
        self.news.set()

    def end(self):
        self.stop()
        self.summary = Summary(len(self.words), 0.0, None, 0.0, None)
        self.news.set()


def told(room):
    """The kinds of events, and the texts of the words."""
    events = msgspec.json.decode(room.frame(0)[0], type=Told).events
    return [getattr(one, "text", type(one).__name__.lower()).strip() for one in events]


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    now = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(rooms, "time", SimpleNamespace(time=lambda: now.now))
    return now


def test_the_rest_of_a_talk_is_told_in_a_room_that_knows_of_none():
    """Its process was lost after the speaker had stopped."""
    room, talk = Room("r"), Session("a", 2)
    talk.stop()
    room.follow(talk)
    talk.say()
    assert told(room) == ["talk", "a1", "a2", "a3"]
    assert room.state == "finishing"


def test_whose_talk_another_has_ended_does_not_take_the_room_back():
    """The speaker of the first comes back for the rest of it, before all of it is said."""
    room, first, second = Room("r"), Session("a", 1), Session("b")
    room.follow(first)
    room.follow(second)
    assert first.stopped
    room.follow(first)
    assert (room.session, room.talk) == (second, "b")
    second.say()
    first.say()
    first.end()
    assert told(room) == ["talk", "a1", "a2", "summary", "talk", "b1"]


def test_since_when_a_speaker_is_here_does_not_go_back(clock):
    room = Room("r")
    room.follow(Session("a"))
    assert room.since == 1000.0
    clock.now = 400.0  # it was set
    room.follow(Session("b"))
    assert room.since == 1000.0
    room.follow(Session("c"), after=5000.0)  # by the clock of the process that had it until then
    assert room.since == 5000.001


def test_who_reads_the_rest_of_a_talk_that_is_over_does_not_speak_here():
    room, talk = Room("r"), Session("a", 1)
    talk.end()
    room.follow(talk)
    assert told(room) == ["talk", "a1", "summary"]
    assert (room.since, room.session) == (0.0, None)


def test_a_talk_that_was_begun_anew_goes_on_where_it_was():
    """The process that goes on has made another session of what the client has kept."""
    room, before, anew = Room("r"), Session("a", 2), Session("a", 2)
    room.follow(before)
    room.follow(anew)
    assert before.stopped
    before.say()  # nobody is told of that any more
    anew.say(2)
    assert told(room) == ["talk", "a1", "a2", "a3", "a4"]
    assert room.talks == 1


def test_a_room_is_ahead_of_a_talk_that_knows_less_of_itself():
    room, before = Room("r"), Session("a", 3)
    before.write_down()
    room.follow(before)
    whole, short = Session("a", 3), Session("a", 2)
    assert room.is_ahead_of(whole)  # what was written down is missing
    for one in (whole, short):
        one.write_down()
    assert not room.is_ahead_of(whole)
    assert room.is_ahead_of(short)
    assert not room.is_ahead_of(Session("b"))


def test_a_room_that_tells_the_rest_of_another_talk_is_not_ahead_of_this():
    room, first, second = Room("r"), Session("a", 5), Session("b")
    room.follow(first)
    room.follow(second)  # of which nothing was told yet
    assert not room.is_ahead_of(second)
    first.end()
    assert not room.is_ahead_of(second)


def test_the_first_phrase_of_a_talk_wakes_who_listens():
    """Whatever the voice of the talk before has spoken."""
    room, first, second = Room("r"), Session("a"), Session("a")
    first.voice = SimpleNamespace(count=1, silent=False)
    room.follow(first)
    room.follow(second)
    second.voice = SimpleNamespace(count=0, silent=False)
    second.news.set()
    pulse = room.pulse.next
    second.voice.count = 1
    second.news.set()
    assert pulse.is_set()


def test_who_listens_in_a_room_that_is_elsewhere_is_woken():
    room, first, second = Room("r"), Session("a"), Session("b")
    room.follow(first)
    room.follow(second)
    pulse = room.pulse.next
    assert room.leave() is second
    assert room.left
    assert pulse.is_set()
    count = room.next
    first.say()
    second.say()
    assert (room.next, room.session) == (count, None)  # nothing more is told here


def test_interim_text_of_a_talk_that_is_over_is_taken_away():
    room, talk = Room("r"), Session("a", 1)
    room.follow(talk)
    talk.interim = " perhaps"
    talk.news.set()
    assert room.interim == " perhaps"
    talk.end()
    assert (room.interim, room.state) == ("", "over")


def test_the_last_phrase_is_waited_for():
    room, talk = Room("r"), Session("a", 1)
    talk.voice = SimpleNamespace(count=0, silent=False)
    room.follow(talk)
    talk.end()
    assert room.session is talk
    talk.voice.silent = True
    talk.news.set()
    assert room.session is None


def test_a_file_holds_the_last_talk_alone():
    async def files():
        room, first = Room("r"), Session("a", 2)
        nothing = await room.file("translation.txt")
        room.follow(first)
        first.end()
        one = await room.file("translation.txt")
        room.follow(Session("b", 3))
        return nothing, one, await room.file("translation.txt")

    assert [text.split() for text in in_time(files())] == [[], ["a1", "a2"], ["b1", "b2", "b3"]]


def test_words_wake_who_listens():
    room, talk = Room("r"), Session("a", 1)
    room.follow(talk)
    pulse = room.pulse.next
    talk.news.set()  # for nothing
    assert not pulse.is_set()
    talk.say()
    assert pulse.is_set()


def test_the_room_goes_in_which_nobody_has_been_for_longest(monkeypatch):
    monkeypatch.setattr(rooms, "MOST_ROOMS", 2)
    known = Rooms(Settings())
    for name in ("a", "b", "a", "c"):
        known.enter(name)
    assert [name for name in ("a", "b", "c") if known.get(name)] == ["a", "c"]


@pytest.mark.parametrize(
    ("talk", "stopped", "goes_on"),
    [("a", False, True), ("a", True, True), ("b", True, True), ("b", False, False)],
)
def test_who_comes_back_goes_on_with_the_talk_of_the_room_or_reads_the_rest_of_another(
    talk, stopped, goes_on
):
    """Another talk that is going on belongs into another room."""
    session, room = Session(talk), Room("r")
    session.stopped, room.talk = stopped, "a"
    service = SimpleNamespace(rooms=None, known=lambda request: session)
    door = RoomDoor(service, "r", None, sent=False)
    assert door._goes_on(room, Resume(talk, "token")) is goes_on
    assert not door._goes_on(room, Start())


def test_a_talk_that_fails_while_the_rest_of_another_is_told_is_not_waited_for():
    room, first, second = Room("r"), Session("a", 1), Session("b")
    room.follow(first)
    room.follow(second)
    second.fault, second.client = "failed", None
    second.news.set()
    assert room.state == "finishing"
    first.end()
    assert room.state == "over"


def test_no_more_rooms_are_forgotten_than_needed(monkeypatch):
    known, talks = Rooms(Settings()), [Session(name) for name in "abc"]
    for talk in talks:
        room = known.enter(talk.id)
        room.follow(talk)
        talk.say(9)
        talk.end()
    assert room.kept == 11  # that it began, nine words, and how it ended
    monkeypatch.setattr(rooms, "MOST_KEPT", 25)
    known.enter("d")
    assert [name for name in "abcd" if known.get(name)] == ["b", "c", "d"]


def test_in_which_rooms_somebody_waits():
    known, ear = Rooms(Settings()), object()
    known.enter("empty")
    known.enter("early").join(ear)
    known.enter("live").follow(Session("a"))
    away = Session("b")
    away.client = None
    known.enter("away").follow(away)
    assert known.waiting == ["early", "away"]


def test_who_is_led_elsewhere_has_a_seat_here():
    known = Rooms(Settings(listeners=2))
    known.enter("r").join(object())
    known.admit_listener()
    known.led = 1
    with pytest.raises(Fault, match="All 2 seats"):
        known.admit_listener()
