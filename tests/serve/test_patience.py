"""A client that is slow to ask holds no connection; one that asks is answered at leisure."""

import http.client
import json
import socket
import ssl
import threading
import time
from contextlib import contextmanager
from functools import partial

import pytest
import uvicorn
from websockets.sync.client import connect

from dragoman.serve import patience, run
from dragoman.serve.protocol import Listen, write
from dragoman.serve.room_keys import Role, new_room
from dragoman.serve.rooms import Room
from dragoman.serve.session import Session
from tests.serve.clients import PATH, steady_words
from tests.serve.running import running
from tests.serve.test_server import RealClient, finish
from tests.serve.test_tls import certificate

__all__ = ["certificate"]

HALVES = {
    "nothing": [],
    "half a head": [b"GET /health HTTP/1.1\r\nHost: x\r\nX: "],
    "half a second head": [b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /hea"],
    "a body that nobody wants": [
        b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n"
    ],
}


@pytest.mark.parametrize("what", HALVES)
def test_who_asks_a_byte_at_a_time_is_not_waited_for(monkeypatch, what):
    monkeypatch.setattr(patience, "HEAD", 0.5)
    with running() as (_, url), socket.create_connection(address(url)) as web:
        for part in HALVES[what]:
            web.sendall(part)
            time.sleep(0.1)  # they are read one by one
        web.settimeout(0.05)
        begun = time.monotonic()
        while not is_over(web, b"x" if HALVES[what] else b""):
            assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("line", "headers", "status"),
    [("x" * 9000, 0, 414), ("x", 200, 431)],
)
def test_a_socket_that_is_asked_for_at_too_great_length_is_refused_and_closed(
    line, headers, status
):
    head = [f"GET {PATH}?{line} HTTP/1.1", "Host: x", "Upgrade: websocket", "Connection: upgrade"]
    head += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    head += [f"X-{number}: y" for number in range(headers)]
    with running() as (_, url), socket.create_connection(address(url)) as web:
        web.settimeout(5)
        web.sendall("\r\n".join([*head, "", ""]).encode())
        told = b""
        while data := web.recv(4096):
            told += data
        assert told.startswith(f"HTTP/1.1 {status} ".encode())


def is_over(web, data):
    """Whether the server has hung up; else it is sent a bit more."""
    try:
        web.sendall(data)
        return web.recv(4096) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def address(url):
    host, port = url.removeprefix("ws://").split(":")
    return host, int(port)


@pytest.fixture
def waits(monkeypatch):
    """Until when each connection has waited for the head of a request. What has to come within a
    moment would not on a slow machine; what was called off cuts nobody off later."""
    found = []

    class Watched(patience.Impatient):
        def _wait(self):
            super()._wait()
            if self._late is not None:
                found.append(self._late)

    monkeypatch.setattr(run, "Impatient", Watched)
    return found


def all_called_off(waits):
    return bool(waits) and all(wait.cancelled() for wait in waits)


def test_who_asks_in_time_is_answered_however_long_that_takes(waits):
    with running() as (_, url):
        with connect(url + PATH) as web:  # a talk, with pauses
            client = RealClient(web)
            client.start()
            assert all_called_off(waits)
            client.speak(4.8)
            assert finish(client) == 1000
            assert client.words == steady_words()
        web = http.client.HTTPConnection(*address(url))
        for _ in range(3):  # one after another
            web.request("GET", "/health")
            assert json.load(web.getresponse())["status"] == "ready"
            assert all_called_off(waits)
        web.close()


@pytest.fixture
def sockets(monkeypatch):
    """The sockets of talks, as the server has them."""
    opened = []

    class Watched(patience.ImpatientSocket):
        def connection_made(self, transport):
            super().connection_made(transport)
            opened.append(self)

    monkeypatch.setattr(run, "ImpatientSocket", Watched)
    return opened


def test_who_sends_faster_than_is_heard_is_not_taken_for_gone(sockets):
    """The answer to a ping stands behind all that was sent before."""
    asked = []

    def ping_is_not_answered(one):
        if one.read_paused:
            one._heard_at = 0.0  # long ago
            one.keepalive_timeout()
            asked.append(one)
        else:
            one.loop.call_later(0.01, ping_is_not_answered, one)

    with running(fastest=60) as (_, url), connect(url + PATH, ping_interval=None) as web:
        client = RealClient(web)
        client.start()
        (one,) = sockets
        for _ in range(40):
            client.speak(4)
        one.loop.call_soon_threadsafe(ping_is_not_answered, one)
        assert finish(client) == 1000
        assert asked == [one]
        assert client.events[-1].audio_ms == 164_800


def test_who_is_gone_without_a_word_is_found_out(monkeypatch):
    monkeypatch.setattr(
        run.uvicorn, "Config", partial(uvicorn.Config, ws_ping_interval=0.1, ws_ping_timeout=0.3)
    )
    came, attach = threading.Event(), Session.attach
    monkeypatch.setattr(Session, "attach", lambda one, to: came.set() or attach(one, to))
    with running() as (service, url), socket.create_connection(address(url)) as web:
        shake_hands(web, PATH)
        send_text(web, '{"type": "start"}')
        assert came.wait(60)
        wait_until(lambda: not any(one.client for one in service._sessions.values()))


LONG = 40_000_000  # bytes: more than the machine itself takes off the server's hands


@pytest.fixture(params=["plain", "TLS"])
def slow(request, monkeypatch):
    """A service with a room of which much is told, and a way to connect and not to read."""
    monkeypatch.setattr(patience, "STALL", 0.5)
    monkeypatch.setattr(patience, "SLOWEST", 100_000)
    monkeypatch.setattr(Room, "file", told_at_length)
    lost = threading.Event()

    class Watched(patience.Impatient):
        def connection_lost(self, exc):
            super().connection_lost(exc)
            lost.set()

    monkeypatch.setattr(run, "Impatient", Watched)
    keys = request.getfixturevalue("certificate") if request.param == "TLS" else ()
    with running(*keys) as (service, url):
        yield service, line_to(url), lost


async def told_at_length(room, name):
    return "x" * LONG


def line_to(url):
    @contextmanager
    def line():
        secure, host = url.startswith("wss"), url.partition("://")[2].split(":")
        with socket.socket() as web:
            web.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            web.connect((host[0], int(host[1])))
            if secure:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                with context.wrap_socket(web) as web:
                    yield web
            else:
                yield web

    return line


def asked(service, web):
    name = new_room()
    token = service.rooms.keys.token(name, Role.LISTENER)
    head = f"GET /v1/rooms/{name}/translation.srt HTTP/1.1\r\nHost: x\r\n"
    web.sendall(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())


def test_a_download_that_nobody_reads_is_given_up(slow):
    service, line, lost = slow
    with line() as web:
        asked(service, web)
        assert lost.wait(60)


def test_a_download_may_be_read_slowly(slow):
    service, line, lost = slow
    with line() as web:
        asked(service, web)
        got = web.recv(65536)
        size = len(got.partition(b"\r\n\r\n")[2])
        while size < LONG:
            if size < 2_000_000:  # and then as fast as it can be had
                time.sleep(0.02)
            got = web.recv(65536)
            assert got
            size += len(got)
        assert not lost.is_set()


def test_a_listener_who_does_not_read_loses_the_seat(slow, monkeypatch):
    service, line, _ = slow
    name = new_room()
    room = service.rooms.enter(name)
    monkeypatch.setattr(room, "_entries", ["1" * 500] * 20_000)  # frames of 200 kB
    with line() as web:
        shake_hands(web, f"/v1/rooms/{name}/listen")
        send_text(web, write(Listen(access_token=service.rooms.keys.token(name, Role.LISTENER))))
        wait_until(lambda: service.rooms.listeners == 1)
        wait_until(lambda: service.rooms.listeners == 0)


def shake_hands(web, path):
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    more = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    web.sendall(f"{head}{more}\r\n".encode())
    assert b" 101 " in web.recv(4096)


def send_text(web, text):
    """At most 125 letters; the mask changes nothing."""
    web.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text.encode())


def wait_until(what):
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until, "It never came to be."
        time.sleep(0.01)
