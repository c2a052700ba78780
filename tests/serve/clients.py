"""Services with scripted models, and clients that speak the protocol."""

from __future__ import annotations

import numpy as np
from starlette.websockets import WebSocketDisconnect

from dragoman.serve.protocol import Audio, Said, Start, Stop, read_event, write, write_sound
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.setup import Setup, System

PATH = "/v1/interpret"
SECOND = 16000


def make_service(model="tests.scripted:steady", **settings) -> Service:
    setup = Setup(model=model, policy="greedy", step_ms=400.0)
    return Service(System(setup), Settings(**settings))


def silence(first: int, seconds: float = 0.4, rate: int = SECOND) -> bytes:
    return write_sound(first, np.zeros(round(seconds * rate), np.float32))


class Client:
    """One side of a talk over a socket of starlette's test client."""

    def __init__(self, socket) -> None:
        self.socket = socket
        self.sample = 0
        self.events = []

    def send(self, message) -> None:
        self.socket.send_text(write(message))

    def next(self):
        self.events.append(read_event(self.socket.receive_text()))
        return self.events[-1]

    def until(self, kind):
        """The next event of a kind; those before it are kept too."""
        while not isinstance(event := self.next(), kind):
            pass
        return event

    def start(self, **more):
        self.send(Start(**more))
        return self.next()

    def speak(self, seconds: float = 0.4, rate: int = SECOND) -> None:
        self.socket.send_bytes(silence(self.sample, seconds, rate))
        self.sample += round(seconds * rate)

    def stop(self) -> None:
        self.send(Stop())

    @property
    def words(self) -> list[tuple[int, str]]:
        return [(event.word, event.text) for event in self.events if isinstance(event, Said)]


def closed(client) -> int:
    """The code with which the server closes, after whatever it still tells."""
    try:
        while True:
            client.next()
    except WebSocketDisconnect as end:
        return end.code


def steady_words(count: int = 12) -> list[tuple[int, str]]:
    """What the steady model says, numbered."""
    return [(i + 1, f" word{i}") for i in range(count)]


RATE_24 = Audio(rate=24000)
