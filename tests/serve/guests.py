"""Who speaks and who listens in rooms."""

from contextlib import contextmanager

from dragoman.serve.protocol import (
    Listen,
    Ready,
    Said,
    Start,
    Summary,
    Told,
)
from dragoman.serve.protocol import Room as RoomEvent
from tests.serve.clients import Client

TOKEN = "a token that nobody guesses"


class Listener(Client):
    """A client that listens in a room."""

    def come_in(self, room, **more):
        self.send(Listen(access_token=room["listener_token"], **more))
        return self.next()

    @property
    def told(self):
        return [one for event in self.events if isinstance(event, Told) for one in event.events]

    @property
    def words(self):
        return [(one.word, one.text) for one in self.told if isinstance(one, Said)]

    def until_state(self, state):
        while self.until(RoomEvent).state != state:
            pass

    def until_told(self, kind):
        while not any(isinstance(one, kind) for one in self.told):
            self.next()


def open_room(web, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = web.post("/v1/rooms", headers=headers)
    assert answer.status_code == 200
    return answer.json()


def speaks(web, room):
    return web.websocket_connect(f"/v1/rooms/{room['room']}/speak")


def listens(web, room):
    return web.websocket_connect(f"/v1/rooms/{room['room']}/listen")


@contextmanager
def attends(web, room):
    """Somebody who listens in a room."""
    with listens(web, room) as ear:
        listener = Listener(ear)
        listener.come_in(room)
        yield listener


def begin(socket, room, **more):
    speaker = Client(socket)
    speaker.send(Start(access_token=room["speaker_token"], **more))
    assert isinstance(speaker.next(), Ready)
    return speaker


def finish(speaker, steps=13):
    for _ in range(steps):
        speaker.speak()
    speaker.stop()
    return speaker.until(Summary)
