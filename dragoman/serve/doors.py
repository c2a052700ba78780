"""Where a speaker comes in: by the server's own door, or by that of a room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from starlette.websockets import WebSocket

from dragoman.serve.logs import note
from dragoman.serve.metrics import ORIGIN
from dragoman.serve.peers import Peers
from dragoman.serve.places import Place
from dragoman.serve.protocol import Close, Code, Fault, Resume, Start
from dragoman.serve.room_keys import Role
from dragoman.serve.rooms import Room
from dragoman.serve.service import Service
from dragoman.serve.session import Session
from dragoman.serve.settings import may_enter

_LONGEST_NAME = 200  # of a site, in the log


class Door(Protocol):
    """What a connection asks before a talk, and tells."""

    def admits(self, offered: str | None) -> bool:
        """Whether a token opens it."""

    async def leads(self, request: Start | Resume) -> Sequence[Place]:
        """Into which other processes, where this talk belongs, the best first; none: into this."""

    def beginning(self, request: Start | Resume) -> AbstractContextManager[None]:
        """A talk is opened or gone on with meanwhile; a fault if it may not be."""

    def opened(self, session: Session) -> None:
        """A talk begins or goes on behind it."""


class FrontDoor:
    """The server's own: who has its token may speak."""

    def __init__(self, service: Service, peers: Peers | None = None, sent: bool = False) -> None:
        """`peers`: who else would have this client; `sent`: by one of them."""
        self._service, self._peers, self._sent = service, peers, sent

    def admits(self, offered: str | None) -> bool:
        return may_enter(self._service.settings, offered)

    async def leads(self, request: Start | Resume) -> Sequence[Place]:
        """Such a talk may go on anywhere, best where it has been, else where there is room."""
        if self._peers is None or self._sent:
            return []
        return await self._peers.places_for(request)

    def beginning(self, request: Start | Resume) -> AbstractContextManager[None]:
        """As many as the service lets in."""
        return nullcontext()

    def opened(self, session: Session) -> None:
        """Nobody else follows this talk."""


class RoomDoor:
    """That of a room, which is in one process."""

    def __init__(self, service: Service, name: str, peers: Peers, sent: bool) -> None:
        """`sent`: by another process, which has looked for the right one."""
        self._service, self._name, self._peers, self._sent = service, name, peers, sent
        self._rooms = service.rooms
        self._after = 0.0  # since when others have had it

    def admits(self, offered: str | None) -> bool:
        return self._rooms.keys.admits(self._name, Role.SPEAKER, offered)

    async def leads(self, request: Start | Resume) -> Sequence[Place]:
        place, self._after = await self._peers.choose(self._name, request)
        return [] if self._sent or place is None else [place]

    @contextmanager
    def beginning(self, request: Start | Resume) -> Iterator[None]:
        room = self._rooms.enter(self._name)
        if (room.spoken_in or room.opening) and not self._goes_on(room, request):
            why = "Somebody speaks in this room already; if that was you, wait a minute."
            raise Fault(Code.TAKEN, why)
        if isinstance(request, Resume):
            yield
            return
        room.opening = True
        try:
            yield
        finally:
            room.opening = False

    def _goes_on(self, room: Room, request: Start | Resume) -> bool:
        """Whether it is the talk of this room, or one that has ended, of which the rest is read."""
        if isinstance(request, Start):
            return False
        known = self._service.known(request)
        return request.session == room.talk or (known is not None and known.stopped)

    def opened(self, session: Session) -> None:
        if self._rooms.enter(self._name).is_ahead_of(session):  # then all is told anew
            self._rooms.leave(self._name)
        self._rooms.enter(self._name).follow(session, self._after)

    def left(self) -> None:
        """The speaker's connection is gone, for whatever reason."""
        if (room := self._rooms.get(self._name)) is not None:
            room.look()


async def turn_away(service: Service, socket: WebSocket) -> None:
    """Before it is accepted: the handshake is answered with a 403."""
    note_stranger(service, socket.headers)
    await socket.close(Close.ORIGIN)


def note_stranger(service: Service, headers: Mapping[str, str]) -> None:
    """A page counts as another site's. It may be our own, behind a proxy that does not hand on its
    name: browsers do not tell why they were refused, so the log has to."""
    service.metrics.refused.labels(ORIGIN).inc()
    names = {name: headers.get(name, "")[:_LONGEST_NAME] for name in ("origin", "host")}
    note("refused", code=ORIGIN, **names)
