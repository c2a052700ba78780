"""The processes beside this one, and in which of them a room is.

A room is where its speaker came last. Nothing is kept of what others have: they are asked
when somebody comes for a room in which nobody speaks here, and now and then while somebody waits in
one. Who came to the wrong process is led to the right one through it, and need not know.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from socket import SOCK_STREAM
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from dragoman.serve.downloads import FILES
from dragoman.serve.logs import note
from dragoman.serve.protocol import Close, Resume, Start
from dragoman.serve.room_keys import Role
from dragoman.serve.rooms import Room
from dragoman.serve.service import Service

PATH = "/v1/peers"
EVERY = 1.0  # seconds between two looks for a room in which somebody waits
PATIENCE = 2.0  # seconds for an answer; who has none by then counts as gone
FILE_PATIENCE = 30.0  # for the captions of a long talk, which are laid out first
_HEADER = "Dragoman-Peer"


class Holding(Struct, frozen=True):
    """What a process has of a room in which somebody has spoken."""

    since: float  # when the speaker last came there; the latest has the room
    talk: str  # its session, if it can be resumed there
    live: bool  # it goes on


class Question(Struct, frozen=True):
    """What do you have of these rooms? Or: let me have this file of the first of them."""

    rooms: list[str]
    file: str | None = None


class Answer(Struct, frozen=True):
    """Of the rooms that were asked for, those that are known."""

    process: str
    ready: bool  # another talk would be let in
    rooms: dict[str, Holding]
    listeners: dict[str, int] = {}  # in rooms, also in those where nobody has spoken yet


@dataclass(frozen=True, slots=True)
class Place:
    """The address of a process; several may have one name."""

    url: str
    host: str
    port: int
    key: str
    sibling: bool = False  # a process of this machine that has the same parent

    def _tls(self) -> ssl.SSLContext | None:
        """A certificate names the machine as others know it, and not one of its processes."""
        if not self.url.startswith("wss:"):
            return None
        context = ssl.create_default_context()
        if self.sibling:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def connect(self, path: str) -> connect:
        """A connection to it, to be opened."""
        return connect(
            self.url + path,
            host=self.host,
            port=self.port,
            additional_headers={_HEADER: self.key},
            ssl=self._tls(),
            compression=None,
            max_size=None,
            proxy=None,
            open_timeout=PATIENCE,
            close_timeout=PATIENCE,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A process beside this one, and what it has of a room, if it has."""

    place: Place
    ready: bool
    holding: Holding | None

    @property
    def since(self) -> float:
        return self.holding.since if self.holding else 0.0

    @property
    def live(self) -> bool:
        return self.holding is not None and self.holding.live

    def knows(self, session: str) -> bool:
        """Whether a talk can be resumed there."""
        return self.holding is not None and self.holding.talk == session


class Peers:
    """Asks other processes for rooms, and answers them."""

    def __init__(self, service: Service) -> None:
        self._service, self._rooms = service, service.rooms
        settings = service.settings
        self._urls, self._siblings = (*settings.peers, *settings.siblings), settings.siblings
        self._process = secrets.token_hex(8)
        self._key = self._rooms.keys.token("", Role.PEER)
        self._asking: dict[str, asyncio.Task[list[Found]]] = {}
        self._own: set[Place] = set()
        self._silent: set[Place] = set()

    def sent(self, socket: WebSocket) -> bool:
        """Whether it is another process that connects; it has looked who is behind it."""
        offered = socket.headers.get(_HEADER)
        return self._service.settings.secret is not None and self._rooms.keys.admits(
            "", Role.PEER, offered
        )

    async def find(self, name: str) -> list[Found]:
        """All that answer, and what each has of a room. Those who ask at one time share the answer:
        a whole audience may come at once."""
        if name not in self._asking:
            self._asking[name] = asyncio.create_task(self._find(name))
            self._asking[name].add_done_callback(lambda _: self._asking.pop(name))
        return await asyncio.shield(self._asking[name])

    async def _find(self, name: str) -> list[Found]:
        answers = await self._ask([name])
        return [Found(place, one.ready, one.rooms.get(name)) for place, one in answers.items()]

    async def holder(self, name: str) -> Place | None:
        """Where a room is, for who listens; None: here, or nowhere yet."""
        room = self._rooms.get(name)
        if room is not None and room.spoken_in:
            return None
        latest = _latest(await self.find(name))
        here = room.since if room else 0.0
        return latest.place if latest and latest.since > here else None

    async def choose(self, name: str, request: Start | Resume) -> tuple[Place | None, float]:
        """Where a talk in a room belongs, None: here; and since when others have had the room."""
        found = await self.find(name)
        latest, chosen = _latest(found), self._chosen(self._rooms.get(name), request, found)
        return chosen.place if chosen else None, latest.since if latest else 0.0

    def _chosen(
        self, room: Room | None, request: Start | Resume, found: Sequence[Found]
    ) -> Found | None:
        """Who has the talk; else who has the room; else who has a place for it, if we have not."""
        if isinstance(request, Resume):
            if self._service.known(request) is not None:
                return None
            chosen = _latest(one for one in found if one.knows(request.session))
        else:
            chosen = _latest(found)
            if chosen is None or (room is not None and room.since >= chosen.since):
                chosen = None
                if room is not None and room.live:
                    return None
            elif not chosen.live and not chosen.ready:
                chosen = None
        if chosen is None and self._service.status != "ready":
            chosen = next((one for one in found if one.ready), None)
        return chosen

    async def file(self, place: Place, name: str, file: str) -> str | None:
        """A file of a room that is elsewhere; None: it cannot be had."""
        return await _exchange(place, Question([name], file), FILE_PATIENCE)

    async def audience(self, name: str) -> int:
        """How many listen in a room. Before a talk they wait wherever they came in."""
        answers = await self._ask([name])
        room = self._rooms.get(name)
        there = sum(answer.listeners.get(name, 0) for answer in answers.values())
        return there + (room.listeners if room else 0)

    async def run(self) -> None:
        """While somebody waits here, look whether the room is elsewhere by now; for ever."""
        while self._urls:
            await asyncio.sleep(EVERY)
            if names := self._rooms.waiting:
                self._leave(names, await self._ask(names))

    def _leave(self, names: Sequence[str], answers: Mapping[Place, Answer]) -> None:
        for name in names:
            room = self._rooms.get(name)
            theirs = [one.rooms[name].since for one in answers.values() if name in one.rooms]
            if room is None or room.spoken_in or room.since >= max(theirs, default=0.0):
                continue
            note("room elsewhere", room=name)
            talk = self._rooms.leave(name)
            if talk is not None:  # its speaker is there, too
                self._service.drop(talk)

    async def answer(self, socket: WebSocket) -> None:
        """Another process asks."""
        if not self.sent(socket):
            await socket.close(Close.ORIGIN)
            return
        await socket.accept()
        try:
            async with asyncio.timeout(PATIENCE):
                question = msgspec.json.decode(await socket.receive_text(), type=Question)
            await socket.send_text(await self._reply(question))
            await socket.close()
        except (msgspec.MsgspecError, KeyError):  # it is of another version
            await socket.close(Close.BAD)
        except (WebSocketDisconnect, TimeoutError, OSError):
            pass

    async def _reply(self, question: Question) -> str:
        if question.file in FILES and question.rooms:
            return await self._rooms.enter(question.rooms[0]).file(question.file)
        held = {name: self._holding(name) for name in question.rooms}
        known = {name: one for name, one in held.items() if one is not None}
        ready = self._service.status == "ready"
        rooms = [room for name in question.rooms if (room := self._rooms.get(name))]
        listeners = {room.name: room.listeners for room in rooms}
        return msgspec.json.encode(Answer(self._process, ready, known, listeners)).decode()

    def _holding(self, name: str) -> Holding | None:
        room = self._rooms.get(name)
        if room is None or not room.since:
            return None
        talk = room.talk if self._service.keeps(room.talk) else ""
        return Holding(room.since, talk, room.live)

    async def _ask(self, names: Sequence[str]) -> dict[Place, Answer]:
        """What the others answer who do in time, each once."""
        places = [one for one in await self._places() if one not in self._own]
        replies = await asyncio.gather(*(_ask(place, Question(list(names))) for place in places))
        answers: dict[str, tuple[Place, Answer]] = {}
        for place, answer in zip(places, replies, strict=True):
            self._notice(place, answer)
            if answer is not None and answer.process != self._process:
                answers[answer.process] = (place, answer)
        return dict(answers.values())

    def _notice(self, place: Place, answer: Answer | None) -> None:
        """This process need not be asked; of one that does not answer the log tells once."""
        if answer is None and place not in self._silent:
            note("no answer of a peer", host=place.host, port=place.port)
            self._silent.add(place)
        elif answer is not None:
            self._silent.discard(place)
            if answer.process == self._process:
                self._own.add(place)

    async def _places(self) -> list[Place]:
        """Where the others are, this process among them: a name may stand for all."""
        places: dict[Place, None] = {}
        for url in self._urls:
            for host, port in await _addresses(url):
                sibling = url in self._siblings
                place = Place(url.replace("http", "ws", 1), host, port, self._key, sibling)
                places[place] = None
        return list(places)


def _latest(found: Iterable[Found]) -> Found | None:
    """Who has a room."""
    return max((one for one in found if one.holding), key=lambda one: one.since, default=None)


async def _ask(place: Place, question: Question) -> Answer | None:
    reply = await _exchange(place, question)
    try:
        return None if reply is None else msgspec.json.decode(reply, type=Answer)
    except msgspec.MsgspecError:  # it is of another version
        return None


async def _exchange(place: Place, question: Question, patience: float | None = None) -> str | None:
    try:
        async with asyncio.timeout(patience or PATIENCE), place.connect(PATH) as socket:
            await socket.send(msgspec.json.encode(question).decode())
            reply = await socket.recv()
            return reply if isinstance(reply, str) else None
    except (OSError, TimeoutError, WebSocketException):
        return None


async def _addresses(url: str) -> list[tuple[str, int]]:
    """All addresses of a name."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(PATIENCE):
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(parts.hostname, port, type=SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):  # nobody has this name, or not now
        return []
    return [(str(address[0]), port) for *_, address in found]
