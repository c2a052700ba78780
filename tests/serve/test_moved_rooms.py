"""A room goes on in another process, and whoever opens its link, wherever that leads, is in it."""

from __future__ import annotations

import asyncio
import json
import signal
import urllib.error
import urllib.request
from contextlib import suppress
from types import SimpleNamespace

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dragoman.serve import places
from dragoman.serve.client import TalkError
from dragoman.serve.doors import FrontDoor, RoomDoor
from dragoman.serve.protocol import (
    Close,
    Code,
    Elsewhere,
    Error,
    Event,
    Listen,
    Resume,
    Speak,
    Start,
    Stop,
    read_event,
    write,
    write_sound,
)
from dragoman.serve.room_keys import Keys, Role
from tests.serve.clients import PATH
from tests.serve.house import (
    SECRET,
    Ear,
    Mouth,
    audience_of,
    ended,
    file_of,
    has,
    house,
    leave,
    more,
    open_room,
    processes,
    threads,
)
from tests.serve.numbers import sound_of, words_of
from tests.serve.processes import in_time


def test_a_room_whose_process_was_killed_is_found_by_newcomers(tmp_path):
    async def talk():
        async with house(2, processes(tmp_path)) as here:
            room = await open_room(here.url)
            early, mouth = Ear(here.url, room), Mouth(here.url, room)
            await early.until(has(10))
            here.processes[0].kill()
            await early.until(lambda ear: ear.state == "listening" and len(ear.words) >= 20)
            await here.open(0)  # it is back, and empty
            here.prefer(0, 1)
            late = Ear(here.url, room)
            await late.until(has(len(early.words)))
            await more(late)
            said = await mouth.end()
            told = await ended(early, late, Ear(here.url, room))
            return said, told, (await file_of(here.url, room)).split()

    said, told, file = in_time(talk())
    assert told == [said] * 3
    assert file == [text.strip() for _, text in said]


def test_a_process_that_drains_keeps_its_rooms_and_they_are_found(tmp_path):
    """A balancer sends nobody to it any more; who is there stays, who comes is led there."""

    async def talk():
        async with house(2, processes(tmp_path)) as here:
            room = await open_room(here.url)
            early, mouth = Ear(here.urls[0], room), Mouth(here.url, room)
            await early.until(has(10))
            here.processes[0].send_signal(signal.SIGTERM)
            await early.until(lambda ear: ear.state == "draining")
            here.prefer(1)
            late = Ear(here.url, room)
            await late.until(has(len(early.words)))
            logs = {early.log, late.log}
            here.front.cut()  # the speaker, too, comes back by the other
            await mouth.until(lambda mouth: mouth.talk.connections >= 2)
            await more(early)
            await more(late)
            said = await mouth.end()
            told = await ended(early, late)
            return said, told, logs | {early.log, late.log}, here.processes[0].wait()

    said, told, logs, status = in_time(talk())
    assert told == [said] * 2
    assert len(logs) == 1  # all the time it was one room, and nothing was told anew
    assert status == 0


def test_who_leaves_is_heard_of_wherever_the_word_arrives():
    """A page that is closed says so to any process, and only its connection leads to the right
    one."""

    async def talk():
        async with house(2, threads(keep=600)) as here:
            room = await open_room(here.url)
            mouth, ear = Mouth(here.urls[0], room), Ear(here.urls[0], room)
            await ear.until(has(10))
            assert await leave(here.urls[1], room, mouth.talk._ready.session) == 204
            assert await leave(here.urls[1], room, "another") == 404
            await more(ear)  # nothing is lost of what still comes
            await mouth.vanish()
            return (await ended(ear))[0]

    words = in_time(talk())
    assert words == words_of(len(words))


def test_who_waits_elsewhere_comes_when_the_talk_begins():
    async def talk():
        async with house(3, threads()) as here:
            room = await open_room(here.url)
            ears = [Ear(here.urls[number], room) for number in (0, 1, 2)]
            for ear in ears:
                await ear.until(lambda ear: ear.state == "waiting")
            mouth = Mouth(here.urls[1], room)
            await mouth.until(lambda mouth: mouth.audience == 3)
            for ear in ears:
                await more(ear)
            said = await mouth.end()
            return said, await ended(*ears)

    said, told = in_time(talk())
    assert told == [said] * 3


def test_a_speaker_who_moves_takes_the_listeners_along():
    """The process is there, but cannot be reached by the others: one of them goes on."""

    async def talk():
        async with house(2, threads()) as here:
            room = await open_room(here.url)
            ear, mouth = Ear(here.urls[0], room), Mouth(here.url, room)
            await ear.until(has(10))
            log = ear.log
            here.connect(0, there=False)
            here.prefer(1)
            here.front.cut()
            await ear.until(lambda ear: ear.log != log)
            await more(ear)
            assert [here.processes[number].streams for number in (0, 1)] == [0, 1]
            here.connect(0)  # from now on it answers; what it has of the room is out of date
            late = [Ear(here.urls[number], room) for number in (0, 1)]
            for one in late:
                await one.until(has(len(ear.words)))
            here.prefer(0)
            here.front.cut()  # back to the first process, and through it to the second
            await mouth.until(lambda mouth: mouth.talk.connections >= 3)
            await more(ear)
            assert [here.processes[number].streams for number in (0, 1)] == [0, 1]
            said = await mouth.end()
            return said, await ended(ear, *late)

    said, told = in_time(talk())
    assert told == [said] * 3


def test_who_never_heard_that_another_process_went_on_is_found_where_it_came_back():
    """A connection is lost before its first answer. Two processes have the talk then."""

    async def talk():
        async with house(2, threads()) as here:
            room = await open_room(here.url)
            path, token = f"/v1/rooms/{room['room']}/speak", room["speaker_token"]
            async with connect(here.urls[0] + path, proxy=None) as socket:
                await socket.send(write(Start(access_token=token)))
                ready = read_event(await socket.recv())
            past = Elsewhere(Start(), 0, 0)
            again = Resume(ready.session, ready.resume_token, 0, 0, 0, past, token)
            here.connect(0, there=False)
            async with connect(here.urls[1] + path, proxy=None) as socket:
                await socket.send(write(again))
                assert read_event(await socket.recv()).resume_token != ready.resume_token
            here.connect(0)
            async with connect(here.urls[0] + path, proxy=None) as socket:
                await socket.send(write(again))
                assert read_event(await socket.recv()).resume_token == ready.resume_token
                await socket.send(write_sound(0, sound_of(0, 10)))
                ears = [Ear(here.urls[number], room) for number in (0, 1)]
                for ear in ears:
                    await ear.until(has(10))
                while here.processes[1].streams:  # it is given up there
                    await asyncio.sleep(0.01)
                await socket.send(write(Stop()))
                return await ended(*ears)

    assert in_time(talk()) == [words_of(10)] * 2


def test_the_next_talk_of_a_room_is_where_the_first_was():
    async def talks():
        async with house(2, threads()) as here:
            room = await open_room(here.url)
            ear = Ear(here.urls[0], room)
            first = Mouth(here.urls[0], room)
            await ear.until(has(10))
            second = Mouth(here.urls[1], room)
            with pytest.raises(TalkError) as caught:
                await second.end()
            assert caught.value.code == Code.TAKEN
            said = await first.end()
            await ear.until(lambda ear: ear.over)
            third = Mouth(here.urls[1], room, header=True)
            await third.until(lambda mouth: mouth.count >= 10)
            said += await third.end()
            late = Ear(here.urls[1], room)
            for one in (ear, late):
                await one.until(has(len(said)))
                await one.leave()
            return said, [ear.words, late.words]

    said, told = in_time(talks())
    assert told == [said] * 2


@pytest.mark.parametrize("came", [0, 1])
def test_a_talk_begins_elsewhere_if_its_process_takes_no_more(came):
    """Whichever of the two the speaker comes to."""

    async def talks():
        async with house(2, threads(streams=1)) as here:
            room, other = await open_room(here.url), await open_room(here.url)
            first = Mouth(here.urls[0], room)
            ear = Ear(here.urls[0], room)
            await ear.until(has(10))
            await first.end()
            await ear.until(lambda ear: ear.over)
            full = Mouth(here.urls[0], other)
            await full.until(lambda mouth: mouth.talk.words)
            log = ear.log
            second = Mouth(here.urls[came], room)
            await ear.until(lambda ear: ear.log != log)
            await more(ear)
            said = await second.end()
            assert here.processes[1].streams == 0
            await full.end()
            return said, await ended(ear)

    said, told = in_time(talks())
    assert told == [said]


def test_a_process_that_ends_hands_its_rooms_on(tmp_path):
    async def talk():
        async with house(2, processes(tmp_path, "--drain", "0.01")) as here:
            room = await open_room(here.url)
            early, mouth = Ear(here.url, room), Mouth(here.url, room)
            await early.until(has(10))
            here.processes[0].send_signal(signal.SIGTERM)
            await mouth.until(lambda mouth: mouth.talk.connections >= 2)
            await early.until(lambda ear: ear.state == "listening")
            await more(early)
            late = Ear(here.url, room)
            await late.until(has(len(early.words)))
            said = await mouth.end()
            return said, await ended(early, late), here.processes[0].wait()

    said, told, status = in_time(talk())
    assert told == [said] * 2
    assert status == 0


def test_what_a_process_tells_is_handed_on_as_it_is():
    async def talk():
        async with house(2, threads()) as here:
            room = await open_room(here.url)
            place = f"{here.urls[1]}/v1/rooms/{room['room']}"
            mouth = Mouth(here.urls[0], room)
            await mouth.until(lambda mouth: mouth.talk.words)
            codes = {}
            for sent in (b"sound", '{"type": "stop"}', "no json"):
                async with connect(f"{place}/listen", proxy=None) as socket:
                    await socket.send(write(Listen(access_token=room["listener_token"])))
                    await socket.send(write(Speak(None)))
                    await socket.send(sent)
                    *_, last = await frames(socket)
                    codes[sent] = last.code, socket.close_code
            await mouth.until(lambda mouth: mouth.audience == 0)
            assert set(codes.values()) == {(Code.MALFORMED, 4400)}
            assert here.processes[1].rooms.led == here.processes[1].rooms.listeners == 0
            await mouth.end()

    in_time(talk())


@pytest.mark.parametrize("sent", [False, True])
def test_who_was_sent_by_another_process_is_not_sent_on(sent):
    """Two processes, each of which takes the other for the right one, as their clocks differ, would
    send a speaker to and fro for ever."""
    place = places.Place("ws://there", "there", 80, "key")

    class Peers:
        async def choose(self, name, request):
            return place, 5.0

        async def places_for(self, request):
            return [place]

    service = SimpleNamespace(rooms=None)
    for door in (FrontDoor(service, Peers(), sent), RoomDoor(service, "room", Peers(), sent)):
        assert list(asyncio.run(door.leads(Start()))) == ([] if sent else [place])


@pytest.mark.parametrize("came", [0, 1])
def test_of_many_who_come_at_once_as_many_are_let_in_as_there_are_seats(came):
    """Where the room is, and where they are led. Another token in a header is in no way."""

    async def talk():
        async with house(2, threads(listeners=3)) as here:
            here.processes[1 - came].rooms._most = 100
            room = await open_room(here.url)
            place = f"{here.urls[came]}/v1/rooms/{room['room']}/listen"
            header = {"Authorization": "Bearer of something else"}
            mouth = Mouth(here.urls[0], room) if came else None
            if mouth:
                await mouth.until(lambda mouth: mouth.talk.words)
            sockets = [
                await connect(place, additional_headers=header, proxy=None) for _ in range(9)
            ]
            for socket in sockets:
                await socket.send(write(Listen(access_token=room["listener_token"])))
            first = [read_event(await socket.recv()) for socket in sockets]
            for socket in sockets:
                await socket.close()
            if mouth:
                await mouth.end()
            return [one.code if isinstance(one, Error) else "in" for one in first]

    assert sorted(in_time(talk())) == ["full"] * 6 + ["in"] * 3


async def frames(socket) -> list[Event]:
    """All that is told until the close."""
    told = []
    with suppress(ConnectionClosed):
        async for frame in socket:
            told.append(read_event(frame))
    return told


@pytest.mark.parametrize(
    "said", [None, b"", b"\x00\xff" * 99 + b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nhello"]
)
def test_what_is_no_peer_keeps_nobody_waiting(said, monkeypatch):
    """It says nothing, hangs up, or is something else."""
    monkeypatch.setattr(places, "PATIENCE", 0.2)

    async def talk():
        async def speak(reader, writer):
            writer.write(said or b"")
            await (reader.read() if said is None else reader.read(1))
            writer.close()

        other = await asyncio.start_server(speak, "127.0.0.1", 0)
        async with other, house(1, threads()) as here:
            here.lines[0][0].ports = [other.sockets[0].getsockname()[1]]
            room = await open_room(here.url)
            ear, mouth = Ear(here.url, room), Mouth(here.url, room)
            await more(ear)
            said = await mouth.end()
            return said, await ended(ear)

    said, told = in_time(talk())
    assert told == [said]


def test_only_processes_with_the_secret_are_answered():
    async def ask():
        async with house(2, threads()) as here:
            for headers in ({}, {"Dragoman-Peer": "guessed"}, {"Dragoman-Peer": ""}):
                with pytest.raises(InvalidStatus) as caught:
                    await connect(here.url + places.PATH, additional_headers=headers, proxy=None)
                assert caught.value.response.status_code == 403

    in_time(ask())


def test_the_secret_opens_no_server_that_wants_a_token():
    """It is for what processes ask each other; whom they lead has the token."""

    async def ask():
        async with house(1, threads(token="a token that nobody guesses")) as here:
            key = {places.HEADER: Keys(SECRET).token("", Role.PEER)}
            async with connect(here.url + places.PATH, additional_headers=key, proxy=None) as peer:
                await peer.send('{"rooms": []}')
                assert json.loads(await peer.recv())["ready"]
            name = "abcdefgh"
            speaker = Keys(SECRET).token(name, Role.SPEAKER)
            told = []
            for path, first in (
                (PATH, Start()),
                (f"/v1/rooms/{name}/speak", Start(access_token=speaker)),
                (f"/v1/rooms/{name}/listen", Listen(access_token=speaker)),
                ("/v1/listen?encoding=linear16", None),
                ("/v1/realtime/translations", None),
            ):
                async with connect(here.url + path, additional_headers=key, proxy=None) as one:
                    if first is not None:
                        await one.send(write(first))
                    await one.wait_closed()
                    told.append(one.close_code)
            file = f"{here.url.replace('ws', 'http', 1)}/v1/audio/translations"
            asked = urllib.request.Request(file, b"", key)
            with pytest.raises(urllib.error.HTTPError) as refused:
                await asyncio.to_thread(urllib.request.urlopen, asked)
            return told, refused.value.code

    assert in_time(ask()) == ([Close.TOKEN] * 5, 401)


def test_who_is_led_is_counted_where_they_came():
    """The other process knows one address, this one's, for all of them."""

    async def talk():
        async with house(2, threads(connects=4, listeners=3)) as here:
            here.processes[0].rooms._most = 100
            room = await open_room(here.url)
            mouth, first = Mouth(here.urls[0], room), Ear(here.urls[0], room)
            await more(first)
            ears = [Ear(here.urls[1], room) for _ in range(3)]
            for ear in ears:
                await more(ear)
            assert here.processes[1].rooms.led == 3
            async with connect(f"{here.urls[1]}/v1/rooms/{room['room']}/listen", proxy=None) as one:
                await one.send(write(Listen(access_token=room["listener_token"])))
                (refused,) = await frames(one)
            assert refused.code == Code.FULL
            for ear in (first, *ears):
                await ear.leave()
            await mouth.end()

    in_time(talk())


def test_who_waits_anywhere_is_counted():
    async def waiting():
        async with house(2, threads()) as here:
            room = await open_room(here.url)
            ears = [Ear(url, room) for url in here.urls.values()]
            for ear in ears:
                await ear.until(lambda ear: ear.state == "waiting")
            told = [await audience_of(url, room) for url in here.urls.values()]
            for ear in ears:
                await ear.leave()
            return told

    assert in_time(waiting()) == [{"type": "audience", "listeners": 2}] * 2
