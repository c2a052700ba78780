"""The client in Python, with a server whose every word is scripted."""

import asyncio
import gc
import ssl
from contextlib import aclosing, asynccontextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from dragoman.errors import DragomanError
from dragoman.serve import client
from dragoman.serve.client import Talk, TalkError
from dragoman.serve.past import Past
from dragoman.serve.protocol import (
    MOST_TEXT,
    Change,
    Error,
    Heard,
    Ready,
    Resume,
    Said,
    Speak,
    Speech,
    Start,
    Summary,
    read_request,
    write,
)
from tests.serve.clients import PATH
from tests.serve.processes import in_time
from tests.serve.running import running

READY = Ready("4c7467bce1f08be9", "token", 0)
SUMMARY = Summary(1, 1000.0, None, 0.1, "de")


class Server:
    """Each connection gets the next part of the script: events and sound; then it is closed."""

    def __init__(self, *script):
        self.script, self.requests = list(script), []

    @asynccontextmanager
    async def running(self):
        async with serve(self._serve, "127.0.0.1", 0) as server:
            yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _serve(self, socket):
        part = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        self.requests.append([])
        reading = asyncio.create_task(self._read(socket, self.requests[-1]))
        await self._asked(1)
        for one in part:
            if callable(one):
                await one(self)
            else:
                await socket.send(one if isinstance(one, bytes | str) else write(one))
        await socket.close(1000 if SUMMARY in part else 1012)
        reading.cancel()

    async def _read(self, socket, requests):
        try:
            async for message in socket:
                if isinstance(message, str):
                    requests.append(read_request(message))
        except ConnectionClosed:
            pass

    async def _asked(self, count):
        while len(self.requests[-1]) < count:
            await asyncio.sleep(0.001)


async def silence(blocks=1):
    for _ in range(blocks):
        yield np.zeros(1600, np.float32)


def talked(server, talk, sound=None, patience=5.0):
    """All that a talk tells; `talk` makes it for an address."""

    async def run():
        async with server.running() as url:
            made = talk(url)
            made._patience = patience
            return made, [event async for event in made.run(sound or silence())]

    return in_time(run())


def said(number):
    return Said(number, f" Donaudampfschiff{number}", 300.0 * number, 123456.7, 1234.5, 0.123)


@pytest.mark.parametrize("url", ["ws://127.0.0.1:9/x", "WS://127.0.0.1:9/x"])
def test_certificates_for_an_address_without_tls_are_refused_with_a_sentence(url):
    """Nothing would be looked at; it was the error of a library, in the middle of `run`."""
    with pytest.raises(DragomanError, match="begin it with wss://"):
        Talk(url, context=ssl.create_default_context())


def test_an_address_may_be_in_capitals():
    async def talk():
        async with aclosing(Talk("WSS://127.0.0.1:9/x", patience=0.1).run(silence())) as events:
            return [event async for event in events]

    with pytest.raises(DragomanError, match="No server at WSS:"):
        in_time(talk())


def test_a_long_talk_is_gone_on_with():
    many = [said(n) for n in range(1, 4001)]
    server = Server(
        [READY, *many, Heard(160, 160, 3990, 0)], [READY, said(4000), said(4001), SUMMARY]
    )
    talk, _ = talked(server, Talk)
    assert [word.word for word in talk.words] == list(range(1, 4002))
    resume = server.requests[1][0]
    assert isinstance(resume, Resume)
    assert len(write(resume)) < MOST_TEXT
    past = Past.of(resume.elsewhere, resume.sample, 0.0)
    assert (resume.word, past.last_word) == (4000, 4000)
    assert past.recalled == [said(n).text for n in range(3991, 4001)]


def test_speech_comes_with_its_sound_also_after_a_loss():
    first, second = Speech(1, 0.0, 24000, 2, "pcm16"), Speech(2, 9.0, 24000, 2, "pcm16")
    voice = Error("voice", "The voice failed; some of the translation is not spoken.")
    server = Server(
        [READY, first, b"abcd", voice, second],
        [READY, b"lost", lambda server: server._asked(2), second, b"efgh", SUMMARY],
    )
    sounds = []

    async def run():
        async with server.running() as url:
            talk = Talk(url, Start(speech="pcm16"))
            async for event in talk.run(silence()):
                if isinstance(event, Speech):
                    sounds.append((event, talk.sound))

    in_time(run())
    assert sounds == [(first, b"abcd"), (second, b"efgh")]
    assert server.requests[1][1] == Speak("pcm16")


def test_what_only_newer_clients_know_is_passed_over():
    new = ['{"type": "mood", "of": "the hall"}', b"and its sound", '{"type": "speech2"}']
    server = Server([READY, *new, write(said(1))[:-1] + ', "speaker": "A"}', SUMMARY])
    _, events = talked(server, Talk)
    assert events == [READY, said(1), SUMMARY]


@pytest.mark.parametrize(
    "text", ["<html>", '{"type": "said", "word": "one"}', '{"type": 7}', "[]", '{"word": 1}']
)
def test_a_server_of_another_protocol_is_told_in_a_sentence(text):
    with pytest.raises(DragomanError, match=r"ws://127\S+ tells is not of this protocol \(.+\);"):
        talked(Server([READY, text]), Talk)


def test_a_change_is_asked_for_again_unless_it_was_refused():
    change, none = Change(latency_ms=1300.0), Error("policy", "There is none.")
    server = Server(
        [READY, said(1), lambda server: server._asked(2)],
        [READY, lambda server: server._asked(2), none, said(2)],
        [READY, said(3), lambda server: server._asked(2), SUMMARY],
    )

    async def run():
        async with server.running() as url:
            talk = Talk(url)
            async for event in talk.run(silence()):
                if isinstance(event, Said) and event.word == 1:
                    await talk.change(latency_ms=1300.0)

    in_time(run())
    asked = [[one for one in part if isinstance(one, Change)] for part in server.requests]
    assert asked == [[change], [change], []]


def test_who_is_refused_for_long_gives_up_and_says_why():
    server = Server([Error("full", "All 4 streams are taken; try later.")])
    with pytest.raises(TalkError, match="All 4 streams are taken") as caught:
        talked(server, Talk, patience=0.3)
    assert caught.value.code == "full"
    assert 2 <= len(server.requests) < 6  # and did not ask all the time


def test_who_may_not_go_on_elsewhere_is_told_why():
    """The other process has another model, say; in mid-talk the same is no end."""
    none = Error("unfit", "This server hears English, not German.")
    server = Server([READY, none, said(1)], [none])
    with pytest.raises(TalkError, match="not German"):
        talked(server, Talk)
    assert len(server.requests) == 2


def test_who_takes_long_over_a_word_is_not_taken_for_a_server_that_is_gone(monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(client, "time", clock)
    server = Server([READY, said(1)], [READY, said(2), SUMMARY])

    async def run():
        async with server.running() as url:
            talk = Talk(url, patience=60.0)
            async for event in talk.run(silence()):
                if event == said(1):
                    clock.now += 100.0
            return talk.words

    assert in_time(run()) == [said(1), said(2)]


def test_without_a_server_it_is_given_up():
    """And why: a wrong path or a certificate that is not trusted are found by nobody else."""
    with pytest.raises(DragomanError, match=r"No server at ws://127.* talk: .*Connect call failed"):
        talked(Server([]), lambda url: Talk("ws://127.0.0.1:1"), patience=0.1)
    with pytest.raises(DragomanError, match="talk: received 1012"):
        talked(Server([]), Talk, patience=0.1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8020/v1/interpret", "127.0.0.1"])
def test_what_is_no_address_is_not_tried_for_a_minute(url):
    with pytest.raises(DragomanError, match="begins with ws://"):
        talked(Server([]), lambda _: Talk(url), patience=1000)


def test_sound_that_fails_ends_the_talk_and_then_is_told():
    async def broken():
        yield np.zeros(1600, np.float32)
        raise ValueError("the microphone is gone")

    server = Server([READY, lambda server: server._asked(2), said(1), SUMMARY])
    heard = []

    async def run():
        async with server.running() as url:
            async for event in Talk(url).run(broken()):
                heard.append(event)

    with pytest.raises(ValueError, match="the microphone is gone"):
        in_time(run())
    assert heard[-2:] == [said(1), SUMMARY]  # what was heard has been said


def test_a_token_of_the_first_message_is_not_told_to_other_processes():
    server = Server([READY, said(1)], [READY, SUMMARY])
    talked(server, lambda url: Talk(url, Start(access_token="a secret")))
    resume = server.requests[1][0]
    assert (resume.access_token, resume.elsewhere.start.access_token) == ("a secret", None)


def test_who_is_cancelled_while_a_talk_is_left_is_cancelled():
    """The sound takes its time to end, as a device does that has to be closed."""
    closing = asyncio.Event()

    async def device():
        try:
            yield np.zeros(1600, np.float32)
            await asyncio.Event().wait()
        finally:
            closing.set()
            await asyncio.sleep(0.1)

    async def leave(url):
        async with aclosing(Talk(url).run(device())) as events:
            async for _ in events:
                break
        # Who comes here goes on with something else.

    async def run():
        over = asyncio.Event()
        async with Server([READY, lambda _: over.wait()]).running() as url:
            task = asyncio.create_task(leave(url))
            await closing.wait()
            task.cancel()
            await asyncio.wait([task])
            over.set()
            return task.cancelled()

    assert in_time(run())


def test_who_has_heard_enough_may_leave_and_end_the_program(caplog):
    """Generators that are left in their middle are closed by the loop, all at once."""

    async def talk(url):
        async for event in Talk(url + PATH).run(endless()):
            if isinstance(event, Said):
                break

    gc.collect()  # what other tests left is not blamed on this one
    caplog.clear()
    with running(fastest=1000) as (_, url):
        asyncio.run(talk(url))
    gc.collect()
    assert [one.message for one in caplog.records if one.name == "asyncio"] == []


async def endless():
    while True:
        yield np.zeros(1600, np.float32)
        await asyncio.sleep(0.01)
