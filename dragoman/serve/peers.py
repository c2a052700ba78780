"""In which of the processes beside this one a room is, or a place for a talk.

A room is where its speaker came last. Nothing is kept of what others have: they are asked
when somebody comes for a room in which nobody speaks here, and now and then while somebody waits in
one; of talks without a room, when one is resumed that is not here, or there is no room for it. Who
came to the wrong process is led to the right one through it, and need not know.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from starlette.requests import HTTPConnection
from starlette.websockets import WebSocket, WebSocketDisconnect

from dragoman.serve.downloads import FILES
from dragoman.serve.logs import note
from dragoman.serve.neighbours import Neighbours
from dragoman.serve.places import HEADER, PATIENCE, Answer, Holding, Place, Question, exchange
from dragoman.serve.protocol import Close, Resume, Start
from dragoman.serve.room_keys import Keys, Role
from dragoman.serve.rooms import Room
from dragoman.serve.service import Service

EVERY = 1.0  # seconds between two looks for a room in which somebody waits
FILE_PATIENCE = 30.0  # for the captions of a long talk, which are laid out first


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
        self._keys = Keys(service.settings.secret)
        self._neighbours = Neighbours(service.settings, self._keys.token("", Role.PEER))
        self._asking: dict[str, asyncio.Task[list[Found]]] = {}

    def sent(self, asked: HTTPConnection) -> bool:
        """Whether it is another process that connects, which has chosen this one for its client,
        and counts it. That opens nothing: the client's token comes with it."""
        return self._keys.admits("", Role.PEER, asked.headers.get(HEADER))

    async def find(self, name: str) -> list[Found]:
        """All that answer, and what each has of a room. Those who ask at one time share the answer:
        a whole audience may come at once."""
        if name not in self._asking:
            self._asking[name] = asyncio.create_task(self._find(name))
            self._asking[name].add_done_callback(lambda _: self._asking.pop(name))
        return await asyncio.shield(self._asking[name])

    async def _find(self, name: str) -> list[Found]:
        answers = await self._neighbours.ask([name])
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

    async def places_for(self, request: Start | Resume) -> list[Place]:
        """Where a talk without a room belongs: where it is kept, else here, if there is room for
        it, which an empty list stands for, else wherever there is."""
        resumed = request.session if isinstance(request, Resume) else ""
        if isinstance(request, Resume) and self._service.known(request) is not None:
            return []
        room_here = self._service.status == "ready"
        if room_here and not resumed:
            return []
        answers = await self._neighbours.ask(talk=resumed)
        kept = [place for place, answer in answers.items() if answer.keeps]
        return [*kept, *([] if room_here else _ready(answers))]

    async def ready(self) -> list[Place]:
        """Those that would let in another talk."""
        return _ready(await self._neighbours.ask())

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

    async def leave(self, name: str, talk: str) -> bool:
        """The speaker of a talk in a room has left; whether that talk is anywhere."""
        if self._leaves(name, talk):
            return True
        answers = await self._neighbours.ask([name], talk, left=True)
        return any(answer.keeps for answer in answers.values())

    def _leaves(self, name: str, talk: str) -> bool:
        room = self._rooms.get(name)
        here = room is not None and room.talk == talk and self._service.keeps(talk)
        if here:
            self._service.leave(talk)
        return here

    async def file(self, place: Place, name: str, file: str) -> str | None:
        """A file of a room that is elsewhere; None: it cannot be had."""
        return await exchange(place, Question([name], file), FILE_PATIENCE)

    async def audience(self, name: str) -> int:
        """How many listen in a room. Before a talk they wait wherever they came in."""
        answers = await self._neighbours.ask([name])
        room = self._rooms.get(name)
        there = sum(answer.listeners.get(name, 0) for answer in answers.values())
        return there + (room.listeners if room else 0)

    async def run(self) -> None:
        """Look after what may change elsewhere; for ever."""
        await asyncio.gather(self._neighbours.expect_back(), self._follow_rooms())

    async def _follow_rooms(self) -> None:
        """While somebody waits here, look whether the room is elsewhere by now."""
        while self._neighbours:
            await asyncio.sleep(EVERY)
            if names := self._rooms.waiting:
                self._leave(names, await self._neighbours.ask(names))

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
        keeps = self._service.keeps(question.talk)
        if question.left and question.rooms:
            keeps = self._leaves(question.rooms[0], question.talk)
        answer = Answer(self._neighbours.process, ready, known, listeners, keeps)
        return msgspec.json.encode(answer).decode()

    def _holding(self, name: str) -> Holding | None:
        room = self._rooms.get(name)
        if room is None or not room.since:
            return None
        talk = room.talk if self._service.keeps(room.talk) else ""
        return Holding(room.since, talk, room.live)


def _ready(answers: Mapping[Place, Answer]) -> list[Place]:
    """In any order: many may ask at once, and shall not all be sent to one."""
    ready = [place for place, answer in answers.items() if answer.ready]
    return random.sample(ready, len(ready))


def _latest(found: Iterable[Found]) -> Found | None:
    """Who has a room."""
    return max((one for one in found if one.holding), key=lambda one: one.since, default=None)
