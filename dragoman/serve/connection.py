"""One WebSocket: what a client sends goes into its talk, what the talk has to tell comes out.

Two tasks, one for each direction. The talk keeps its words, so a client that reads slowly is told
later, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from dragoman.serve.dialect import Act, Beginning, Closed, Dialect, Flush, Native, News, Turn
from dragoman.serve.doors import Door, FrontDoor
from dragoman.serve.logs import note
from dragoman.serve.places import Place
from dragoman.serve.protocol import (
    Audience,
    Change,
    Close,
    Code,
    Event,
    Fault,
    Interim,
    Ready,
    Resume,
    Speak,
    Start,
    State,
    Stop,
    write,
)
from dragoman.serve.relay import Beginnings, Line, NoPlaceError, receive_from
from dragoman.serve.service import Service
from dragoman.serve.session import Session
from dragoman.serve.speech import Earphone
from dragoman.serve.tasks import ended

FIRST_WORDS = 10.0  # seconds until the first message, of somebody whose token is not known yet
_MOST_ERRORS = 100  # that wait to be told; who reads so slowly is told the latest
LAST_WORDS = 10.0  # seconds for an error and the close, should the client not read


class Connection:
    """A client, from its first message to the close."""

    def __init__(
        self,
        service: Service,
        socket: WebSocket,
        dialect: type[Dialect] = Native,
        door: Door | None = None,
        sent: bool = False,
        promise: ExitStack | None = None,
    ) -> None:
        """`sent`: by another process, which counts this client. `promise`: for so long a place is
        kept for it."""
        self._service, self._socket, self._sent = service, socket, sent
        self._dialect = dialect(socket, service.settings.longest)
        self._door = door or FrontDoor(service)
        self._earphone = Earphone(service.voices)
        self._errors: deque[Event] = deque(maxlen=_MOST_ERRORS)  # that do not end the talk
        self._following: Start | None = None  # the talk that comes after this one
        self._said = Beginnings()
        self._answered = 0  # frames, to that
        self._promise = promise or ExitStack()
        self._replaced: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def replaced(self) -> None:
        if not self._replaced.done():
            self._replaced.set_exception(
                Fault(Code.REPLACED, "Another connection has resumed this talk.")
            )

    async def serve(self) -> None:
        """Accept, talk, close; whatever is wrong is told to this client alone."""
        try:
            await self._socket.accept(self._dialect.subprotocol)
            if not self._sent:
                self._service.greet(self._socket.client.host if self._socket.client else "")
            await self._close(await self._talk())
        except Fault as fault:
            note("refused", code=fault.code)
            self._service.metrics.refused.labels(fault.code).inc()
            await self._close(fault.close, fault)
        except (WebSocketDisconnect, OSError):
            pass
        finally:
            self._promise.close()
            self._replaced.cancel()

    async def _close(self, code: int, fault: Fault | None = None) -> None:
        with suppress(WebSocketDisconnect, OSError, RuntimeError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                if fault is not None:
                    await self._send(fault.event)
                await self._socket.close(code)

    async def _talk(self) -> int:
        """The code to close with."""
        request, acts = await self._first()
        places = await self._door.leads(request)
        if (code := await self._led(places, request)) is not None:
            return code
        self._said = Beginnings()
        self._promise.close()  # it is kept now
        with self._door.beginning(request):
            if isinstance(request, Start):
                session, known = await self._service.start(request), Resume("", "")
            else:
                session, known = await self._service.resume(request), request
        await self._go_through(session, request, known, acts)
        while (start := self._following) is not None:
            self._following = None
            session = await self._service.go_on(start)
            await self._go_through(session, start, Resume("", ""), ())
        return Close.DONE

    async def _go_through(
        self, session: Session, request: Start | Resume, known: Resume, acts: Sequence[Act]
    ) -> None:
        """A talk, to its end."""
        self._dialect.expect(session.audio)
        session.lasting = isinstance(request, Resume)  # who is told no name cannot come back
        session.attach(self)
        try:
            self._door.opened(session)
            await self._send(Ready(session.id, session.resume_token, session.sample))
            session.lasting = self._dialect.lasting
            if isinstance(request, Start):
                await self._earphone.put_on(session, request.speech)
            await self._take(session, acts)
            self._service.scheduler.wake()
            await self._both_ways(self._tell(session, known), self._listen(session))
        finally:
            self._earphone.take_off()
            self._service.detach(session, self)

    async def _led(self, places: Sequence[Place], request: Start | Resume) -> int | None:
        """Speak with the first of these processes that takes this client: the code to close with.
        None: none does; places that were free are taken by now."""
        if not places or self._said.too_long:
            return None
        new = isinstance(request, Start) and isinstance(self._door, FrontDoor)
        path, messages, skip = self._led_by(request)
        token = self._dialect.token(None)  # of the handshake; what was said is said again
        for place in places:
            line = Line(self._service, self._socket, self._dialect.farewell, skip)
            try:
                return await line.serve(place, path, messages, new=new, token=token)
            except NoPlaceError:
                continue
        return None

    def _led_by(self, request: Start | Resume) -> tuple[str, Sequence[str | bytes], int]:
        """Where this client goes on in another process, what it has said, and how many answers to
        that it has."""
        path = self._socket.url.path
        if self._dialect.lasting:
            return path, [write(request)], 0
        return f"{path}?{self._socket.url.query}", self._said.messages, self._answered

    async def _first(self) -> Beginning:
        idle, dialect = self._service.settings.idle, self._dialect
        if dialect.token_comes_first:  # who has none cannot keep a connection by small talk
            self._check(dialect.token(None))
        else:
            idle = min(idle, FIRST_WORDS)

        async def receive() -> str | bytes:
            message = await self._receive(idle)
            self._said.append(message)
            return message

        async def send(text: str) -> None:
            await self._socket.send_text(text)
            self._answered += 1

        request, acts = await dialect.begin(receive, send, self._service.check)
        if not dialect.token_comes_first:
            self._check(dialect.token(request))
        return request, acts

    def _check(self, offered: str | None) -> None:
        if not self._door.admits(offered):
            raise Fault(Code.TOKEN, "This server wants an access token, and not this one.")

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
            await ended(telling, listening)

    async def _listen(self, session: Session) -> None:
        while True:
            message = await self._receive(None if session.stopped else self._service.settings.idle)
            try:
                await self._take(session, self._dialect.read(message))
            except Fault as fault:
                if fault.code not in (Code.POLICY, Code.UNFIT, Code.TOO_LONG):
                    raise
                self._errors.append(fault.event)
            session.news.set()  # what was wrong with it, or what the dialect answers
            self._service.scheduler.wake()
            await session.have_space()
            if self._following is not None:  # whose sound is not for this talk
                await asyncio.Event().wait()

    async def _take(self, session: Session, acts: Sequence[Act]) -> None:
        for act in acts:
            if isinstance(act, Stop):
                session.stop()
            elif isinstance(act, Flush):
                session.flush()
            elif isinstance(act, Change):
                await self._service.change(session, act)
            elif isinstance(act, Speak):
                await self._earphone.put_on(session, act.speech)
            elif isinstance(act, Turn):
                await self._turn(session, act.start)
            else:
                session.hear(*act)

    async def _turn(self, session: Session, start: Start) -> None:
        """End this talk for another; what is wrong with that one leaves this as it is."""
        try:
            await self._service.check(start)
        except Fault as fault:
            self._errors.append(fault.event)
        else:
            self._following = start
            session.stop()

    async def _tell(self, session: Session, known: Resume) -> None:
        """Tell what is new, until all is said."""
        word, transcript, sample = known.word, known.transcript, session.sample
        interim, state, audience = "", "listening", 0
        closings, flushes = session.closings, session.flushes
        while True:
            session.news.clear()
            await self._speak()
            while self._errors:
                await self._send(self._errors.popleft())
            written, said = session.transcripts_after(transcript), session.words_after(word)
            closed = [Closed(session.flushes > flushes)] if session.closings > closings else []
            transcript, word = session.last_transcript, session.last_word
            closings, flushes = session.closings, session.flushes
            # After the words that it counts: whoever knows it has them, should this be the last.
            heard = []
            if session.sample - sample >= (1 if session.stopped else session.rate // 2):
                sample, heard = session.sample, [session.heard]
            shown = [Interim(session.interim)] if interim != session.interim else []
            interim = session.interim
            await self._send(*written, *said, *closed, *heard, *shown)
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
                if self._following is None:
                    await self._send(session.summary)
                return
            await session.news.wait()

    async def _speak(self) -> None:
        if (fault := self._earphone.fault()) is not None:
            await self._send(fault.event)
        for event, sound in self._earphone.fresh():
            for frame in self._dialect.speak(event, sound):
                if isinstance(frame, bytes):
                    await self._socket.send_bytes(frame)
                else:
                    await self._socket.send_text(frame)

    async def _send(self, *news: News) -> None:
        for frame in self._dialect.write(news):
            await self._socket.send_text(frame)

    async def _receive(self, seconds: float | None) -> str | bytes:
        """The next message; silence for so long is a fault."""
        try:
            async with asyncio.timeout(seconds):
                return await receive_from(self._socket)
        except TimeoutError:
            raise Fault(Code.IDLE, f"Nothing came for {seconds:g} s.") from None
