"""One listener of a room: words and perhaps sound come out, nothing but wishes goes in."""

from __future__ import annotations

import asyncio

from starlette.websockets import WebSocket

from dragoman.serve.connection import FIRST_WORDS, Connection
from dragoman.serve.peers import Peers
from dragoman.serve.protocol import (
    Close,
    Code,
    Encoding,
    Fault,
    Interim,
    Listen,
    Speak,
    read_request,
    write,
)
from dragoman.serve.relay import Line
from dragoman.serve.rooms import Room
from dragoman.serve.service import Service
from dragoman.serve.session import Session

_WISHES = 100
"""Messages of a listener; a person who turns the sound on and off needs fewer."""
REMIND = 15.0
"""Seconds after which who was told nothing is told how it goes once more: a phone that has changed
networks holds a line that is dead, and notices by this."""


class Listening(Connection):
    """A listener, from the first message to the close."""

    def __init__(
        self, service: Service, socket: WebSocket, name: str, peers: Peers, sent: bool
    ) -> None:
        """`sent`: by another process, which has looked for the one that the room is in."""
        super().__init__(service, socket, sent=sent)
        self._name, self._peers = name, peers
        self._speech: Encoding | None = None
        self._hears: tuple[Session | None, Encoding | None] = (None, None)

    async def _talk(self) -> int:
        request = await self._wish(min(self._service.settings.idle, FIRST_WORDS))
        if not isinstance(request, Listen):
            raise Fault(Code.MALFORMED, "The first message of a listener is 'listen'.")
        rooms = self._service.rooms
        if not rooms.may_listen(self._name, request.access_token):
            raise Fault(Code.TOKEN, "This is not the token of this room.")
        place = None if self._sent else await self._peers.holder(self._name)
        rooms.admit_listener()
        if place is not None:
            line = Line(self._service, self._socket)
            return await line.serve(place, self._socket.url.path, [write(request)])
        room = rooms.enter(self._name)
        self._speech = request.speech
        room.join(self)
        try:
            await self._both_ways(self._tell_room(room, request), self._take_wishes(room))
        finally:
            self._earphone.take_off()
            room.part(self)
        return Close.COME_AGAIN

    async def _wish(self, seconds: float | None) -> Listen | Speak:
        message = await self._receive(seconds)
        if isinstance(message, bytes):
            raise Fault(Code.MALFORMED, "Listeners send no sound.")
        request = read_request(message)
        if not isinstance(request, Listen | Speak):
            raise Fault(Code.MALFORMED, "Listeners may say 'listen' and 'speak'.")
        return request

    async def _take_wishes(self, room: Room) -> None:
        for _ in range(_WISHES):
            request = await self._wish(None)
            if isinstance(request, Listen):
                raise Fault(Code.MALFORMED, "This listener is in the room already.")
            self._speech = request.speech
            room.pulse.beat()
        raise Fault(Code.MALFORMED, f"A listener has {_WISHES} wishes; come in again.")

    async def _tell_room(self, room: Room, known: Listen) -> None:
        """Tell what is new, for as long as the room is here."""
        at = known.next if known.log == room.log and known.next <= room.next else 0
        told, interim = room.event, ""
        await self._send(told)
        while not room.left:
            pulse, now = room.pulse.next, room.event
            await self._speak()  # first: the last phrases come when the talk is over
            await self._listen_on(room.session)
            while at < room.next:
                frame, at = room.frame(at)
                await self._socket.send_text(frame)
            room.reached[self] = at
            if interim != room.interim:
                interim = room.interim
                await self._send(Interim(interim))
            if told != now:  # last: who is told that it is over has been told all until then
                told = now
                await self._send(told)
            try:
                async with asyncio.timeout(REMIND):
                    await pulse.wait()
            except TimeoutError:
                await self._send(told)

    async def _listen_on(self, session: Session | None) -> None:
        """The voice of the talk that is going on, if it is wanted."""
        wanted = (session, self._speech if session else None)
        if wanted == self._hears:
            return
        self._hears = wanted
        if session is None:
            self._earphone.take_off()
            return
        await self._earphone.put_on(session, self._speech)
        await self._speak()  # that there is no voice
