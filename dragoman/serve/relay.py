"""A client of this process that speaks with another one, where its room is, or a place for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from dragoman.serve.logs import note
from dragoman.serve.places import Place, Question, ask
from dragoman.serve.protocol import Close
from dragoman.serve.service import Service
from dragoman.serve.tasks import ended

_MOST_SAID = 1 << 21  # bytes, more than any message has
_EACH = 100  # bytes that a message takes by itself
EVERY = 15.0
"""Seconds between two looks whether the other process is there."""
_SILENT = 2  # looks that found nothing
_NOT_SENT = (1005, 1006, 1015)  # close codes that stand for none


class NoPlaceError(Exception):
    """The other process does not take this client; nothing was said to it, nor by it."""


class Beginnings:
    """What a client has said before its talk began, should another process have to hear it."""

    def __init__(self) -> None:
        self.messages: list[str | bytes] = []
        self.too_long = False
        self._size = 0

    def append(self, message: str | bytes) -> None:
        """Somebody may talk for ever, and never begin."""
        self._size += len(message) + _EACH
        self.too_long = self._size > _MOST_SAID
        if not self.too_long:
            self.messages.append(message)


class Line:
    """Hands messages to and fro."""

    def __init__(
        self, service: Service, socket: WebSocket, farewell: str | None = None, skip: int = 0
    ) -> None:
        """`farewell`: ends the talk of a client that cannot come back to it; `skip`: so many of the
        first answers it has been told already."""
        self._service, self._socket = service, socket
        self._farewell, self._skip = farewell, skip
        self._told = False  # anything, since that was asked last

    async def serve(
        self,
        place: Place,
        path: str,
        messages: Sequence[str | bytes],
        *,
        new: bool = False,
        token: str | None = None,
    ) -> int:
        """Say what the client has said and offered, and hand on the rest: the code with which the
        other process closes. If it is lost, the client shall come again."""
        rooms, closed, met = self._service.rooms, None, False
        rooms.led += 1
        staying = self._service.leading() if self._farewell else nullcontext()
        try:
            with staying as ending:
                async with place.connect(path, new=new, token=token) as there:
                    met = True
                    for message in messages:
                        await there.send(message)
                    await first_of(
                        self._back(there),
                        self._on(there),
                        hanging(place, self._lately),
                        *([self._end(there, ending)] if ending else []),
                    )
                    closed = there.close_code
        except (OSError, TimeoutError, WebSocketException) as error:
            if new and not met:
                raise NoPlaceError from error
            note("lost a peer", host=place.host, port=place.port)
        finally:
            rooms.led -= 1
        return Close.COME_AGAIN if closed in (None, *_NOT_SENT) else closed

    async def _back(self, there: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            async for frame in there:
                self._told = True
                if self._skip:
                    self._skip -= 1
                elif isinstance(frame, str):
                    await self._socket.send_text(frame)
                else:
                    await self._socket.send_bytes(frame)

    async def _on(self, there: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            while True:
                await there.send(await receive_from(self._socket))
        await asyncio.Event().wait()  # what was told before the close is handed back meanwhile

    def _lately(self) -> bool:
        """Whether anything was told since this was asked last."""
        told, self._told = self._told, False
        return told

    async def _end(self, there: ClientConnection, ending: asyncio.Event) -> None:
        """Once this process ends, so does the talk: what was heard is said."""
        await ending.wait()
        with suppress(ConnectionClosed):
            await there.send(self._farewell or "")
        await asyncio.Event().wait()


async def hanging(place: Place, told: Callable[[], bool] = lambda: False) -> None:
    """Raise once another process hangs, on which somebody here waits. It is asked apart: on their
    line an answer would stand behind what was sent before, which may be more than it can hear in
    minutes. `told`: it has been heard of over that line since this was asked last."""
    silent = 0
    while silent < _SILENT:
        await asyncio.sleep(EVERY)
        there = told() or await ask(place, Question([])) is not None
        silent = 0 if there else silent + 1
    raise TimeoutError


async def first_of(*work: Coroutine[Any, Any, None]) -> None:
    """Until one of them ends; whatever went wrong in it is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await ended(*tasks)


async def receive_from(socket: WebSocket) -> str | bytes:
    """The next message of a client."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1006))
    text: str | None = message.get("text")
    if text is not None:
        return text
    data: bytes = message.get("bytes") or b""
    return data
