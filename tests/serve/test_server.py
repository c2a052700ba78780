"""The real server on loopback, with a real client; and the command that starts it."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from dragoman.cli import main
from dragoman.cli.serve_options import _read_secret
from dragoman.errors import DragomanError
from dragoman.serve.connection import Connection
from dragoman.serve.intake import MOST_WAITING
from dragoman.serve.protocol import (
    Change,
    Ready,
    Resume,
    Said,
    Start,
    Stop,
    Summary,
    read_event,
    write,
)
from dragoman.serve.run import Address, Server, allow_many_connections, make_server
from tests import warm
from tests.serve.clients import PATH, Client, make_service, silence, steady_words
from tests.serve.running import running
from tests.talkers import TEXT

ROOT = Path(__file__).parents[2]


class RealClient(Client):
    """The same over a real socket."""

    def next(self):
        self.events.append(read_event(self.socket.recv()))
        return self.events[-1]

    def send(self, message):
        self.socket.send(write(message))

    def speak(self, seconds=0.4):
        self.socket.send(silence(self.sample, seconds))
        self.sample += round(seconds * 16000)


def finish(client):
    client.speak(4.8)
    client.stop()
    client.until(Summary)
    with pytest.raises(ConnectionClosed):
        client.next()
    return client.socket.close_code


def test_a_talk_over_a_real_socket():
    with running() as (_, url), connect(url + PATH) as one, connect(url + PATH) as two:
        first, second = RealClient(one), RealClient(two)
        assert isinstance(first.start(), Ready)
        second.start()
        assert finish(first) == finish(second) == 1000
        assert first.words == second.words == steady_words()


def test_a_connection_that_is_cut_without_a_word():
    with running() as (_, url):
        with connect(url + PATH) as web:
            client = RealClient(web)
            ready = client.start()
            client.speak(2)
            while len(client.words) < 2:
                client.next()
            web.socket.shutdown(socket.SHUT_RDWR)
        with connect(url + PATH) as web:
            client.socket = web
            client.send(Resume(ready.session, ready.resume_token, word=client.words[-1][0]))
            client.until(Ready)
            client.sample = 0  # all of it again
            assert finish(client) == 1000
        assert client.words == steady_words()
        assert client.events[-1].audio_ms == 4800


def test_who_is_gone_before_the_talk_is_open_takes_no_place():
    """Nobody can come back to it: its name was never told."""
    with running() as (service, url):
        asked, go, open_one = threading.Event(), threading.Event(), service._open

        def slowly(*args):
            asked.set()
            assert go.wait(60)
            return open_one(*args)

        service._open = slowly
        with connect(url + PATH) as web:
            web.send(write(Start()))
            assert asked.wait(60)
        go.set()
        until = time.monotonic() + 30
        while service.streams or service._sessions:
            assert time.monotonic() < until, "It has a place, and nobody to take it."
            time.sleep(0.01)


def test_a_frame_of_megabytes_is_not_even_read():
    with running() as (_, url), connect(url + PATH) as one, connect(url + PATH) as two:
        good, bad = RealClient(one), RealClient(two)
        good.start()
        bad.start()
        with suppress(ConnectionClosed):
            bad.socket.send(bytes(20 << 20))
            while True:
                bad.next()
        assert bad.socket.close_code in (1009, 1006)  # 1006: it closed while we still sent
        assert finish(good) == 1000
        assert good.words == steady_words()


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://[", "http://a:b"])
def test_a_page_of_another_site_meets_a_403(origin):
    with running() as (_, url), pytest.raises(InvalidStatus) as caught:
        connect(url + PATH, origin=origin)
    assert caught.value.response.status_code == 403


class MadeSocket:
    """A socket whose reader may be as slow as it likes."""

    headers = {}
    client = None

    def __init__(self, messages, reads):
        self.messages, self.reads = list(messages), reads
        self.sent, self.code = [], None

    async def accept(self, subprotocol=None):
        pass

    async def receive(self):
        if not self.messages:
            await asyncio.Event().wait()
        message = self.messages.pop(0)
        kind = "bytes" if isinstance(message, bytes) else "text"
        return {"type": "websocket.receive", kind: message}

    async def send_text(self, text):
        if len(self.sent) > 1:
            await self.reads.wait()
        self.sent.append(read_event(text))

    async def close(self, code):
        self.code = code


def test_a_client_that_does_not_read_stalls_nobody():
    talk = [write(Start()), *[silence(64_000 * i, 4) for i in range(4)], write(Stop())]

    async def both():
        service = make_service(model="tests.talkers:sentences")
        scheduler = asyncio.create_task(service.scheduler.run())
        slow, quick = MadeSocket(talk, asyncio.Event()), MadeSocket(talk, asyncio.Event())
        quick.reads.set()
        waiting = asyncio.create_task(Connection(service, slow).serve())
        while len(slow.sent) < 2:
            await asyncio.sleep(0)
        await Connection(service, quick).serve()
        assert isinstance(quick.sent[-1], Summary)
        while service.streams:
            await asyncio.sleep(0)
        assert (len(slow.sent), slow.code) == (2, None)
        slow.reads.set()  # and in the end it has missed nothing
        await waiting
        scheduler.cancel()
        for web in (slow, quick):
            assert "".join(e.text for e in web.sent if isinstance(e, Said)).strip() == TEXT

    asyncio.run(both())


def test_errors_for_a_client_that_does_not_read_do_not_pile_up():
    wrong = [write(Change(policy=f"wait-{number}")) for number in range(5000)]

    async def talk():
        service = make_service()
        web = MadeSocket([write(Start()), *wrong], asyncio.Event())
        serving = asyncio.create_task(Connection(service, web).serve())
        while web.messages:
            await asyncio.sleep(0)
        web.reads.set()
        while not web.sent[-1:] or "wait-4999" not in getattr(web.sent[-1], "message", ""):
            await asyncio.sleep(0)
        serving.cancel()
        return web.sent

    assert len(asyncio.run(talk())) < 200


def test_another_lag_brings_another_step_and_loses_no_sound():
    async def changed():
        service = make_service()
        session = await service.start(Start())
        session.hear(0, silence_samples()[:4800])
        await service.change(session, Change(latency_ms=2000))
        assert session.setup.policy.startswith("agreeatt")
        session.hear(4800, silence_samples()[:3200])
        assert len(session.next_chunk().samples) == 8000  # 500 ms, where it was 400
        assert session.due is None

    asyncio.run(changed())


def test_who_has_stopped_may_be_silent_while_the_rest_is_said():
    async def last_words():
        service = make_service(model="tests.talkers:slow", idle=0.2)
        scheduler = asyncio.create_task(service.scheduler.run())
        web = MadeSocket([write(Start()), silence(0, 0.4), write(Stop())], asyncio.Event())
        web.reads.set()
        await Connection(service, web).serve()
        scheduler.cancel()
        assert isinstance(web.sent[-1], Summary)
        assert web.code == 1000

    asyncio.run(last_words())


def test_the_process_ends_when_the_last_listener_has_been_told():
    class Listening:
        def replaced(self):
            raise AssertionError("nobody else came")

    async def drained():
        service, listener = make_service(), Listening()
        server = make_server(service)
        session = await service.start(Start())
        session.attach(listener)
        server.handle_exit(signal.SIGTERM, None)
        assert not await server.on_tick(1)
        assert service.draining
        service.scheduler.remove(session)  # finished, and its summary is still on the way
        assert not await server.on_tick(1)
        service.detach(session, listener)
        assert await server.on_tick(1)

    asyncio.run(drained())


def test_a_talk_that_is_opened_while_a_drain_begins_is_told_of_it():
    async def opened():
        service = make_service()
        opening = asyncio.create_task(service.start(Start()))
        while not service._opening:
            await asyncio.sleep(0)
        service.drain()
        return await opening

    assert asyncio.run(opened()).state == "draining"


def test_a_client_that_sends_faster_than_it_is_heard_waits():
    frames = [silence(64_000 * i, 4) for i in range(40)]

    async def flood():
        service = make_service(model="tests.talkers:many", fastest=1e6)
        web = MadeSocket([write(Start()), *frames, write(Stop())], asyncio.Event())
        web.reads.set()
        talking = asyncio.create_task(Connection(service, web).serve())
        while not web.sent:
            await asyncio.sleep(0.01)
        for _ in range(1000):  # nobody steps: however long it is let, it reads no more than this
            await asyncio.sleep(0)
        (session,) = service._sessions.values()
        assert MOST_WAITING <= session._intake.waiting_seconds < MOST_WAITING + 4
        assert len(web.messages) == 40 + 1 - 8
        scheduler = asyncio.create_task(service.scheduler.run())
        await talking
        scheduler.cancel()
        assert web.sent[-1].audio_ms == 160_000
        assert len([event for event in web.sent if isinstance(event, Said)]) == 1000

    asyncio.run(flood())


def test_who_comes_back_and_goes_again_has_the_whole_time_again():
    class Gone:
        def replaced(self):
            raise AssertionError("nobody was there")

    async def twice():
        service = make_service(keep=1000)
        session = await service.start(Start())
        for _ in range(2):
            listener = Gone()
            session.attach(listener)
            service.detach(session, listener)
        service._forget(session, 1)  # the first parting's time is over
        assert service.streams == 1
        assert not service.quiet  # the talk goes on without a listener
        service._forget(session, 2)
        assert service.streams == 0
        assert service.quiet

    asyncio.run(twice())


def test_who_has_waited_longest_is_stepped_first_and_nobody_starves():
    async def crowd():
        service = make_service(batch=2, streams=9)
        sessions = [await service.start(Start()) for _ in range(5)]
        for session in sessions:
            for at in range(3):
                session.hear(6400 * at, silence_samples())
        order = []
        while batch := service.scheduler._due():
            order.append([sessions.index(one) for one in batch])
            await service.scheduler._step(batch)
            if len(order) < 4:
                sessions[0].hear(sessions[0].sample, silence_samples())  # one who never stops
        assert order[:3] == [[0, 1], [2, 3], [4, 0]]
        assert all(len(session.words) >= 3 for session in sessions)

    asyncio.run(crowd())


def silence_samples():
    import numpy as np

    return np.zeros(6400, np.float32)


@contextmanager
def command(*options):
    """`dragoman serve` as a process, and its address."""
    process = warm.Copy(
        *("-m", "dragoman", "serve", "--port", "0", *options),
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )
    try:
        for line in process.stderr:
            if line.startswith("Ready on "):
                break
        page = line.removeprefix("Ready on ").strip()
        yield process, page.replace("http://", "ws://").rstrip("/") + PATH
    finally:
        process.kill()
        process.wait()


def test_sigterm_lets_the_talk_finish():
    friend = ("--origin", "https://Talks.example/")  # as people may write it, and browsers do not
    options = ("--model", "tests.scripted:steady", "--policy", "greedy", *friend)
    with command(*options) as (process, url):
        with connect(url, origin="https://talks.example") as web:
            client = RealClient(web)
            client.start(source="de")
            client.speak(2)
            process.send_signal(signal.SIGTERM)
            while not any(getattr(e, "state", "") == "draining" for e in client.events):
                client.next()
            health = url.replace("ws://", "http://").replace(PATH, "/health")
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(health)
            assert json.load(caught.value)["status"] == "draining"
            assert finish(client) == 1000
            assert client.words == steady_words()
        rest = process.stderr.read()
        assert process.wait() == 0
    lines = [json.loads(line) for line in rest.splitlines()]
    assert [line["event"] for line in lines] == ["started", "draining", "finished"]
    assert "word0" not in rest


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
@pytest.mark.parametrize("window", [True, False])
def test_a_hangup_costs_no_talk(window):
    """Of the window, at which it ends once the talk has; of somebody who rotates logs."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty() if window else os.pipe()
    options = ("--model", "tests.scripted:steady", "--policy", "greedy", "--port", "0")
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    process = warm.Copy("-m", "dragoman", "serve", *options, env=env, stderr=theirs)
    try:
        os.close(theirs)
        told = b""
        while (ready := re.search(rb"Ready on http(\S+)/", told)) is None:
            told += os.read(ours, 4096)
        with connect("ws" + ready[1].decode() + PATH) as web:
            client = RealClient(web)
            client.start(source="de")
            client.speak(2)
            for _ in range(2):  # from the shell, and from the system
                process.send_signal(signal.SIGHUP)
            if window:
                os.close(ours)
            assert finish(client) == 1000
            assert client.words == steady_words()
        if window:
            assert process.wait() == 0
        assert process.poll() is (0 if window else None)
    finally:
        process.kill()
        process.wait()
        with suppress(OSError):
            os.close(ours)


def test_talks_that_do_not_end_are_ended_for_them():
    options = ("--model", "tests.scripted:steady", "--policy", "offline", "--drain", "0.01")
    with command(*options) as (process, url), connect(url) as web:
        client = RealClient(web)
        client.start()
        client.speak(4.8)
        process.send_signal(signal.SIGTERM)
        client.until(Summary)
        assert client.words == steady_words()
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--host", "0.0.0.0"], "could come in; set DRAGOMAN_TOKEN"),
        (["--token-file", "nothing.txt"], "the token in nothing.txt: No such file or directory."),
        (["--token-file", "sound.raw"], "the token in sound.raw: this is no text."),
        (["--token-file", "short.txt"], "The token in short.txt has 1 of at least 16 characters"),
        (["--token-file", "empty.txt"], "at least 16 characters"),
        (["--proxy", "talks.example"], "--proxy takes an address"),
        (["--proxy", "*", "--proxy", ""], "or '*', not ''."),
        (["--proxy", "10.0.0.7/8"], "a network like 10.0.0.0/8"),
        (["--origin", "https://talks.example/page"], "--origin takes a site"),
        (["--origin", "https://talks.example?x"], "--origin takes a site"),
        (["--peer", "http://two:8020"], "set DRAGOMAN_SECRET, or give --secret-file"),
        (
            ["--peer", "two:8020", "--secret-file", "long.txt"],
            "--peer takes an address that begins",
        ),
        (["--peer", "http://:8020", "--secret-file", "long.txt"], "--peer takes a site, like"),
        (["--peer", "http://two:x", "--secret-file", "long.txt"], "--peer takes a site, like"),
        (["--peer", "http://two/room", "--secret-file", "long.txt"], "--peer takes a site"),
        (["--peer", "http://two", "--secret-file", "long.txt", "--cluster"], "one place for rooms"),
        (["--tls-cert", "short.txt"], "go together"),
        (["--tls-cert", "short.txt", "--tls-key", "short.txt"], "Cannot serve TLS"),
        (["--host", "no.such.host.invalid", "--token-file", "long.txt"], "Cannot listen on"),
        (["--host", "grüße..example", "--token-file", "long.txt"], "another with --host or --port"),
    ],
)
def test_a_wrong_start_is_a_sentence(options, complaint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("DRAGOMAN_TOKEN", "DRAGOMAN_SECRET"):
        monkeypatch.delenv(name, raising=False)
    for name, text in [("short.txt", "x"), ("empty.txt", ""), ("long.txt", "x" * 16)]:
        Path(name).write_text(text)
    Path("sound.raw").write_bytes(b"\xff" * 32)
    started: list[object] = []
    monkeypatch.setattr(Server, "run", lambda self, sockets: started.append(sockets))  # or it stays
    with pytest.raises(SystemExit) as end:
        main(["serve", "--port", "0", "--model", "tests.scripted:steady", *options])
    assert not started
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert "Ready" not in told


def test_a_token_of_the_environment_is_told_by_its_name_and_may_end_with_a_line(monkeypatch):
    monkeypatch.setenv("DRAGOMAN_TOKEN", " short\n")
    with pytest.raises(DragomanError, match="The token in DRAGOMAN_TOKEN has 5 of at least 16"):
        _read_secret("token", None, "DRAGOMAN_TOKEN")
    monkeypatch.setenv("DRAGOMAN_TOKEN", "x" * 16 + "\n")
    assert _read_secret("token", None, "DRAGOMAN_TOKEN") == "x" * 16


@pytest.mark.parametrize("loaded", [False, True])
def test_a_port_that_is_taken_is_a_sentence(loaded):
    with Address("127.0.0.1", 0).bound() as taken:
        if loaded:
            taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DragomanError, match=f"port {port}: .*another with --host or --port"):
            Address("127.0.0.1", port).bound()


def test_a_server_that_is_started_again_does_not_wait_for_old_connections():
    with Address("127.0.0.1", 0).bound() as before:
        before.listen()
        port = before.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            before.accept()[0].close()  # first: so its side lingers
    with Address("127.0.0.1", port).bound():
        pass


@pytest.mark.parametrize(
    ("before", "after"),
    [((1024, 4096), [(4096, 4096)]), ((1024, -1), [(65536, -1)]), ((70000, 80000), [])]
    + [((-1, -1), []), ((512, 512), [])],
)
def test_an_audience_may_open_as_many_files_as_the_machine_allows(monkeypatch, before, after):
    resource = pytest.importorskip("resource")
    asked = []
    monkeypatch.setattr(resource, "RLIM_INFINITY", -1)
    monkeypatch.setattr(resource, "getrlimit", lambda what: before)
    monkeypatch.setattr(resource, "setrlimit", lambda what, limits: asked.append(limits))
    allow_many_connections()
    assert asked == after
