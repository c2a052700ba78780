"""One WebSocket: what a client sends goes into its talk, what the talk has to tell comes out.

Two tasks, one for each direction. The talk keeps its words, so a client that reads slowly is told
later, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect

from dragoman.serve.logs import note
from dragoman.serve.protocol import (
    Audience,
    Change,
    Close,
    Code,
    Encoding,
    Event,
    Fault,
    Heard,
    Interim,
    Ready,
    Resume,
    Speak,
    Start,
    State,
    Stop,
    read_request,
    read_sound,
    write,
)
from dragoman.serve.service import Service
from dragoman.serve.session import Session
from dragoman.serve.settings import Settings, may_enter
from dragoman.serve.speech import Earphone

LAST_WORDS = 10.0  # seconds for an error and the close, should the client not read


class Door(Protocol):
    """Where a speaker comes in: by the server's own door, or by that of a room."""

    def admits(self, offered: str | None) -> bool:
        """Whether a token opens it."""

    def begin(self) -> None:
        """A talk is about to begin; a fault if it may not."""

    def opened(self, session: Session) -> None:
        """A talk begins or goes on behind it."""


class FrontDoor:
    """The server's own: who has its token may speak."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def admits(self, offered: str | None) -> bool:
        return may_enter(self._settings, offered)

    def begin(self) -> None:
        """As many as the service lets in."""

    def opened(self, session: Session) -> None:
        """Nobody else follows this talk."""


class Connection:
    """A client, from its first message to the close."""

    def __init__(self, service: Service, socket: WebSocket, door: Door | None = None) -> None:
        self._service, self._socket = service, socket
        self._door = door or FrontDoor(service.settings)
        self._earphone = Earphone(service.voices)
        self._errors: deque[Event] = deque()  # that do not end the talk
        self._replaced: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def replaced(self) -> None:
        if not self._replaced.done():
            self._replaced.set_exception(
                Fault(Code.REPLACED, "Another connection has resumed this talk.")
            )

    async def serve(self) -> None:
        """Accept, talk, close; whatever is wrong is told to this client alone."""
        await self._socket.accept()
        try:
            await self._talk()
            await self._close(Close.DONE)
        except Fault as fault:
            note("refused", code=fault.code)
            self._service.metrics.refused.labels(fault.code).inc()
            await self._close(fault.close, fault)
        except (WebSocketDisconnect, OSError):
            pass
        finally:
            self._replaced.cancel()

    async def _close(self, code: Close, fault: Fault | None = None) -> None:
        with suppress(WebSocketDisconnect, OSError, RuntimeError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                if fault is not None:
                    await self._socket.send_text(write(fault.event))
                await self._socket.close(code)

    async def _talk(self) -> None:
        request = await self._first()
        if isinstance(request, Start):
            self._door.begin()
            session, known = await self._service.start(request), Resume("", "")
        else:
            session, known = self._service.resume(request), request
        session.attach(self)
        try:
            self._door.opened(session)
            await self._send(Ready(session.id, session.resume_token, session.sample))
            if isinstance(request, Start):
                await self._listen_aloud(session, request.speech)
            await self._both_ways(self._tell(session, known), self._listen(session))
        finally:
            self._earphone.take_off()
            self._service.detach(session, self)

    async def _first(self) -> Start | Resume:
        message = await self._receive(self._service.settings.idle)
        if isinstance(message, bytes):
            raise Fault(Code.MALFORMED, "Sound comes after 'start' or 'resume'.")
        request = read_request(message)
        if not isinstance(request, Start | Resume):
            raise Fault(Code.MALFORMED, "The first message is 'start' or 'resume'.")
        offered = self._socket.headers.get("authorization", "").removeprefix("Bearer ")
        if not self._door.admits(offered or request.access_token):
            raise Fault(Code.TOKEN, "This server wants an access token, and not this one.")
        return request

    async def _both_ways(
        self, tell: Coroutine[Any, Any, None], listen: Coroutine[Any, Any, None]
    ) -> None:
        telling, listening = asyncio.create_task(tell), asyncio.create_task(listen)
        tasks = (telling, listening, self._replaced)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            # An error of the client's explains the end better than the end does.
            for task in sorted(done, key=lambda one: one is telling):
                task.result()
        finally:
            await _ended(telling, listening)

    async def _listen(self, session: Session) -> None:
        while True:
            message = await self._receive(None if session.stopped else self._service.settings.idle)
            try:
                await self._take(session, message)
            except Fault as fault:
                if fault.code not in (Code.POLICY, Code.UNFIT, Code.TOO_LONG):
                    raise
                self._errors.append(fault.event)
                session.news.set()
            self._service.scheduler.wake()
            await session.room.wait()

    async def _take(self, session: Session, message: str | bytes) -> None:
        if isinstance(message, bytes):
            session.hear(*read_sound(message))
            return
        request = read_request(message)
        if isinstance(request, Stop):
            session.stop()
        elif isinstance(request, Change):
            await self._service.change(session, request)
        elif isinstance(request, Speak):
            await self._listen_aloud(session, request.speech)
        else:
            raise Fault(Code.MALFORMED, "This talk has begun already.")

    async def _listen_aloud(self, session: Session, encoding: Encoding | None) -> None:
        """Without a voice the talk goes on as text."""
        try:
            await self._earphone.put_on(session, encoding)
        except Fault as fault:
            self._errors.append(fault.event)
        session.news.set()

    async def _tell(self, session: Session, known: Resume) -> None:
        """Tell what is new, until all is said."""
        word, transcript, sample = known.word, known.transcript, session.sample
        interim, state, audience = "", "listening", 0
        while True:
            session.news.clear()
            await self._speak()
            while self._errors:
                await self._send(self._errors.popleft())
            if session.sample - sample >= (1 if session.stopped else session.rate // 2):
                sample = session.sample
                await self._send(Heard(sample))
            for line in session.transcripts[transcript:]:
                await self._send(line)
                transcript += 1
            for said in session.words[word:]:
                await self._send(said)
                word += 1
            if interim != session.interim:
                interim = session.interim
                await self._send(Interim(interim))
            if state != session.state:
                state = session.state
                await self._send(State(session.state))
            if audience != session.audience:
                audience = session.audience
                await self._send(Audience(audience))
            if session.news.is_set():
                continue
            if session.fault is not None:
                raise session.fault
            if session.summary is not None and not self._earphone.waits:
                await self._send(session.summary)
                return
            await session.news.wait()

    async def _speak(self) -> None:
        if (fault := self._earphone.fault()) is not None:
            await self._send(fault.event)
        for event, sound in self._earphone.fresh():
            await self._send(event)
            await self._socket.send_bytes(sound)

    async def _send(self, event: Event) -> None:
        await self._socket.send_text(write(event))

    async def _receive(self, seconds: float | None) -> str | bytes:
        """The next message; silence for so long is a fault."""
        try:
            async with asyncio.timeout(seconds):
                message = await self._socket.receive()
        except TimeoutError:
            raise Fault(Code.IDLE, f"Nothing came for {seconds:g} s.") from None
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1006))
        text: str | None = message.get("text")
        if text is not None:
            return text
        data: bytes = message.get("bytes") or b""
        return data


async def _ended(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks and wait until they are gone; how they ended is known already or moot."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
