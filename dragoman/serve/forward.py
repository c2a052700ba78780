"""A file that this process has no place for, sent on to one that has; its answer comes back.

The other process is asked before any of the file is sent (`Expect: 100-continue`): who has no place
by then says so, and the next one is tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import h11
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from dragoman.serve.logs import note
from dragoman.serve.openai_stream import left
from dragoman.serve.places import HEADER, PATIENCE, Place
from dragoman.serve.protocol import Code, Fault
from dragoman.serve.relay import first_of, hanging
from dragoman.serve.service import Service
from dragoman.serve.tasks import ended

_READ = 1 << 16  # bytes
_OF_THE_LINE = (b"connection", b"keep-alive", b"expect", b"upgrade", b"te", HEADER.lower().encode())
_LOST = (OSError, TimeoutError, EOFError, h11.ProtocolError)  # the other process
_Event = h11.Response | h11.InformationalResponse | h11.Data | h11.EndOfMessage


async def forwarded(service: Service, request: Request, places: Sequence[Place]) -> Response | None:
    """The answer of the first process that takes the file in a request; None: none does."""
    for place in places:
        line, answer = _Line(place), None
        try:
            if await line.offer(request):
                answer = await _answer(service, line, request)
                return answer
        except _LOST:
            note("lost a peer", host=place.host, port=place.port)
            if line.taken:  # and perhaps half sent, which cannot be had again
                why = "The process that had this file is lost; try again."
                raise Fault(Code.FAILED, why) from None
        finally:
            if answer is None:
                line.close()
    return None


async def _answer(service: Service, line: _Line, request: Request) -> Response:
    """The file goes there, and what is said of it comes; should the client hang up, so do we."""
    line.kept.enter_context(service.leading())
    sending = asyncio.create_task(line.send(request))
    answering = asyncio.create_task(line.head())
    watching = asyncio.create_task(hanging(line.place))
    try:
        await _first((sending, answering, watching))
        if not answering.done() and sending.done():
            sending.result()
            leaving = asyncio.create_task(left(request.receive))
            await _first((leaving, answering, watching))
            await ended(leaving)
        if not answering.done() and watching.done():
            watching.result()
        if not answering.done():
            raise ClientDisconnect
        head = answering.result()
    finally:
        await ended(sending, answering, watching)
    headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
    for name in ("connection", "transfer-encoding", "date"):
        headers.pop(name, None)
    return _Forwarded(line, head.status_code, headers)


async def _first(tasks: Iterable[asyncio.Task[Any]]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


class _Forwarded(StreamingResponse):
    """What another process answers. Who has hung up by then is told nothing of it, and the line is
    closed all the same; so is the client's, if the rest of the answer is lost."""

    def __init__(self, line: _Line, status: int, headers: dict[str, str]) -> None:
        super().__init__(line.body(), status, headers)
        self._line = line

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        place = self._line.place
        try:
            await first_of(super().__call__(scope, receive, send), hanging(place))
        except _LOST:
            note("lost a peer", host=place.host, port=place.port)
        finally:
            self._line.close()


class _Line:
    """A connection to another process, for one request."""

    def __init__(self, place: Place) -> None:
        self.taken = False  # the file, by the other process
        self.kept = ExitStack()
        self.place, self._http = place, h11.Connection(h11.CLIENT)
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None

    async def offer(self, request: Request) -> bool:
        """Whether the file may come."""
        place, tls = self.place, self.place.tls()
        name = urlsplit(place.url).hostname if tls else None
        async with asyncio.timeout(PATIENCE):
            self._reader, self._writer = await asyncio.open_connection(
                place.host, place.port, ssl=tls, server_hostname=name
            )
            headers = [one for one in request.headers.raw if one[0] not in _OF_THE_LINE]
            headers += [(HEADER.encode(), place.key.encode()), (b"connection", b"close")]
            headers += [(b"expect", b"100-continue")]
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            self._write(h11.Request(method="POST", target=target, headers=headers))
            self.taken = isinstance(await self._next(), h11.InformationalResponse)
        return self.taken

    async def send(self, request: Request) -> None:
        assert self._writer is not None
        async for piece in request.stream():
            self._write(h11.Data(data=piece))
            await self._writer.drain()
        self._write(h11.EndOfMessage())

    async def head(self) -> h11.Response:
        while not isinstance(event := await self._next(), h11.Response):
            pass
        return event

    async def body(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self.kept.close()

    def _write(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        assert self._writer is not None
        self._writer.write(self._http.send(event) or b"")

    async def _next(self) -> _Event:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                data = await self._reader.read(_READ)
                self._http.receive_data(data)
            elif isinstance(event, _Event):
                return event
            else:
                raise EOFError
