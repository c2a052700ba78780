"""A client that is slow to ask holds no connection; one that asks is answered at leisure."""

import http.client
import json
import socket
import time

import pytest
from websockets.sync.client import connect

from dragoman.serve import patience
from tests.serve.clients import PATH, steady_words
from tests.serve.running import running
from tests.serve.test_server import RealClient, finish

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
            assert time.monotonic() - begun < 10


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


def test_who_asks_in_time_is_answered_however_long_that_takes(monkeypatch):
    monkeypatch.setattr(patience, "HEAD", 0.2)
    with running() as (_, url):
        with connect(url + PATH) as web:  # a talk, with pauses
            client = RealClient(web)
            client.start()
            time.sleep(0.5)
            client.speak(4.8)
            assert finish(client) == 1000
            assert client.words == steady_words()
        web = http.client.HTTPConnection(*address(url))
        for _ in range(3):  # one after another
            web.request("GET", "/health")
            assert json.load(web.getresponse())["status"] == "ready"
            time.sleep(0.3)
        web.close()
