"""Who speaks in a room: who leaves and comes back, one after the other, one at a time."""

import threading

import numpy as np
import pytest

from dragoman.serve.protocol import (
    Code,
    Elsewhere,
    Error,
    Fault,
    Interim,
    Ready,
    Resume,
    Said,
    Start,
    Summary,
    Talk,
    write_sound,
)
from tests.serve.clients import Client, closed, steady_words
from tests.serve.guests import attends, begin, finish, open_room, speaks
from tests.serve.numbers import sound_of, words_of


def say_ten(speaker):
    """Ten numbers, and the words that they became."""
    speaker.socket.send_bytes(write_sound(0, sound_of(0, 10)))
    while len(speaker.words) < 10:
        speaker.next()


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


def leave(web, room, session, token="speaker_token"):
    """The status of the answer to a speaker who will not come back."""
    path, headers = f"/v1/rooms/{room['room']}/leave", {"Authorization": f"Bearer {room[token]}"}
    return web.post(path, params={"session": session}, headers=headers).status_code


@pytest.mark.parametrize("first", ["the line", "the word"])
def test_who_leaves_for_good_ends_the_talk_with_the_connection(opened, first):
    """Whichever is noticed first; and what comes over the connection until then is heard."""
    service, web = opened(model="tests.serve.numbers:numbers", keep=600)
    room = open_room(web)
    with attends(web, room) as listener:
        with speaks(web, room) as mouth:
            speaker = begin(mouth, room)
            (session,) = service._sessions.values()
            if first == "the word":
                assert leave(web, room, session.id) == 204
            say_ten(speaker)
        listener.until_state("away" if first == "the line" else "over")
        if first == "the line":
            assert leave(web, room, session.id) == 204
            listener.until_state("over")
        listener.until_told(Summary)
    assert listener.words == words_of(10)


def test_nobody_else_ends_a_talk(opened):
    service, web = opened(keep=600)
    room, other = open_room(web), open_room(web)
    with speaks(web, room) as mouth:
        begin(mouth, room)
        (session,) = service._sessions.values()
        assert leave(web, room, session.id, "listener_token") == 401
        assert leave(web, {**room, "speaker_token": other["speaker_token"]}, session.id) == 401
        assert leave(web, other, session.id) == 404
        assert leave(web, room, "") == leave(web, room, session.id[::-1]) == 404
    assert service.streams == 1
    assert not session.stopped


def test_a_talk_that_begins_anew_goes_on_for_its_listeners(opened):
    """The machine gave it up; its speaker comes back with what was said. Nothing is told twice."""
    service, web = opened(model="tests.serve.numbers:numbers")
    room = open_room(web)
    with attends(web, room) as listener:
        with speaks(web, room) as mouth:
            speaker = begin(mouth, room)
            say_ten(speaker)
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
            say_ten(speaker)
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
