"""A client in Python: a talk that goes on over lost connections and lost processes.

async for event in Talk("ws://127.0.0.1:8020/v1/interpret", Start(source="de")).run(sound): ...
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import suppress
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedOK, InvalidURI, WebSocketException

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.serve.kept_sound import KeptSound
from dragoman.serve.protocol import (
    Change,
    Code,
    Elsewhere,
    Error,
    Event,
    Heard,
    Ready,
    Resume,
    Said,
    Speak,
    Speech,
    Start,
    Stop,
    Summary,
    Transcript,
    is_new_kind,
    read_event,
    write,
)

PASSING = {Code.FULL, Code.OVERLOADED, Code.DRAINING, Code.IDLE, Code.TOO_FAST}
"""What another attempt, later or with another process, may overcome."""
GOES_ON = {Code.POLICY, Code.UNFIT, Code.TOO_LONG, Code.VOICE}
"""Errors after which a talk goes on over the same connection, once it does."""
MOST_HISTORY = 100_000
"""Characters of words, and as many of transcripts, that are told to another process: some 800 of
each. All of a long talk would be too big a message."""


class TalkError(DragomanError):
    """The server has ended the talk; `code` says why."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class Talk:
    """One talk; `run` is called once."""

    def __init__(
        self,
        url: str,
        start: Start | None = None,
        *,
        token: str | None = None,
        patience: float = 60.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`patience`: seconds without a server that goes on with it after which the talk is given
        up. `context`: for wss, if the usual certificates are not those to trust."""
        self._url, self._start, self._token = url, start or Start(), token
        self._patience = patience
        self._ssl = _certificates(url, context)
        self._kept = KeptSound(self._start.audio)
        self._ready: Ready | None = None
        self._heard = Heard(0, 0, 0, 0)
        self.words: list[Said] = []
        self.transcripts: list[Transcript] = []
        self.sound = b""
        """Of the `Speech` that was told last."""
        self.connections = 0
        """How many there were, the first among them."""
        self._socket: ClientConnection | None = None  # once the talk goes on over it
        self._sending: asyncio.Task[None] | None = None  # sound, over it
        self._phrase: Speech | None = None  # whose sound comes next
        self._change: Change | None = None  # of the policy: the last one
        self._refusal: Error | None = None  # the last, if nothing else came since

    async def run(self, sound: AsyncIterable[Samples]) -> AsyncIterator[Event]:
        """Send sound, at its own pace, and tell what the server tells, until the summary.

        Sound are floats in [-1, 1] at the rate that `start` says; for Opus at 48 kHz.
        """
        feeding = asyncio.create_task(self._kept.feed(sound))
        try:
            since, lost = time.monotonic(), Exception("it hangs up")
            while True:
                try:
                    async with self._connecting() as socket:
                        await socket.send(write(self._first()))
                        while (event := await self._next(socket)) is not None:
                            yield event
                            if isinstance(event, Summary):
                                return
                            if self._refusal is None:  # now: whoever listens took their time
                                since = time.monotonic()
                except InvalidURI as error:
                    raise DragomanError(
                        f"'{self._url}' is no address to talk to; one begins with ws:// or wss://."
                    ) from error
                except (OSError, WebSocketException) as error:
                    lost = error
                finally:
                    await self._part()
                if time.monotonic() - since > self._patience:
                    raise self._given_up(lost)
                await asyncio.sleep(min(1.0, 0.05 + (time.monotonic() - since) / 4))
        finally:
            await _end(feeding)

    def _given_up(self, lost: Exception) -> DragomanError:
        """`lost`: how the last connection ended, or why there was none."""
        if self._refusal is not None:
            return TalkError(self._refusal.code, self._refusal.message)
        why = str(lost).rstrip(".") or type(lost).__name__
        return DragomanError(f"No server at {self._url} goes on with this talk: {why}.")

    async def change(self, *, policy: str | None = None, latency_ms: float | None = None) -> None:
        """Another policy, or the one for another lag, from now on; what is wrong with it comes as
        an `Error`, and the talk goes on as before."""
        self._change = Change(policy, latency_ms)
        if self._socket is not None:
            with suppress(OSError, WebSocketException):
                await self._socket.send(write(self._change))

    def _connecting(self) -> connect:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return connect(
            self._url,
            additional_headers=headers,
            compression=None,
            max_size=None,
            ssl=self._ssl,
            open_timeout=10,
        )

    async def _part(self) -> None:
        """The connection is gone."""
        sending, self._socket, self._sending, self._phrase = self._sending, None, None, None
        if sending is not None:
            await _end(sending)

    async def _next(self, socket: ClientConnection) -> Event | None:
        """What a connection tells next that is new; None: nothing more. No generator: of several,
        one in the other, none could be left in the middle without complaints at the end."""
        while (event := await self._told(socket)) is not None:
            self._refusal = None
            if isinstance(event, Error):
                self._judge(event)
                self._refusal = event if event.code in PASSING else None
            if isinstance(event, Ready):
                await self._go_on(socket, event)
                self._sending = asyncio.create_task(self._send(socket, event.sample))
            if self._is_new(event):
                return event
        return None

    async def _told(self, socket: ClientConnection) -> Event | None:
        """The next event, speech together with its sound."""
        with suppress(ConnectionClosedOK):
            while True:
                frame = await socket.recv()
                if isinstance(frame, str):
                    event = self._read(frame)
                    self._phrase = event if isinstance(event, Speech) else None
                    if event is not None and self._phrase is None:
                        return event
                elif self._phrase is not None:
                    self.sound = frame
                    return self._phrase
        return None

    def _read(self, frame: str) -> Event | None:
        """An event; None: of a kind that only newer clients know."""
        try:
            return read_event(frame)
        except msgspec.MsgspecError as error:
            if is_new_kind(frame):
                return None
            raise DragomanError(
                f"What the server at {self._url} tells is not of this protocol ({error}); it may "
                "be a newer server than this client knows."
            ) from error

    async def _go_on(self, socket: ClientConnection, ready: Ready) -> None:
        """The talk begins, or goes on: what was wished for since then is told again."""
        wishes: list[Change | Speak] = [self._change] if self._change else []
        if self._ready is not None and self._start.speech is not None:
            wishes.append(Speak(self._start.speech))
        self._ready, self._socket = ready, socket
        self.connections += 1
        for wish in wishes:
            await socket.send(write(wish))

    def _first(self) -> Start | Resume:
        """The first message of a connection."""
        if self._ready is None:
            return self._start
        heard = self._heard
        said, written = _latest(self.words), _latest(self.transcripts)
        start = replace(self._start, access_token=None)
        elsewhere = Elsewhere(start, heard.keep, heard.word, heard.transcript, said, written)
        last = self.words[-1].word if self.words else 0
        last_written = self.transcripts[-1].number if self.transcripts else 0
        ready = self._ready
        return Resume(
            ready.session,
            ready.resume_token,
            last,
            last_written,
            heard.sample,
            elsewhere,
            self._start.access_token,
        )

    def _judge(self, error: Error) -> None:
        """Raise what no other attempt can mend."""
        if error.code in (Code.POLICY, Code.UNFIT):
            self._change = None  # it is not asked for again
        if error.code in PASSING or (self._socket is not None and error.code in GOES_ON):
            return
        raise TalkError(error.code, error.message)

    def _is_new(self, event: Event) -> bool:
        """Note what came; a word that is known already is nothing new."""
        if isinstance(event, Heard):
            self._heard = event
            self._kept.forget(event.keep)
        elif isinstance(event, Said):
            if self.words and event.word <= self.words[-1].word:
                return False
            self.words.append(event)
        elif isinstance(event, Transcript):
            if self.transcripts and event.number <= self.transcripts[-1].number:
                return False
            self.transcripts.append(event)
        return True

    async def _send(self, socket: ClientConnection, sample: int) -> None:
        """All sound from a sample on, as it comes, and the stop at its end."""
        kept = self._kept
        sample = max(0, sample - kept.before)
        with suppress(OSError, WebSocketException):
            while True:
                kept.more.clear()
                for end, frame in kept.since(sample):
                    await socket.send(frame)
                    sample = end
                if kept.ended and sample >= kept.end:
                    await socket.send(write(Stop()))
                    return
                await kept.more.wait()


def _certificates(
    url: str, context: ssl.SSLContext | None
) -> ssl.SSLContext | Literal[True] | None:
    """Those to trust at an address: True are the usual ones, None is a connection without any."""
    scheme = url.partition(":")[0].lower()
    if scheme == "ws" and context is not None:
        raise DragomanError(
            f"'{url}' is an address without TLS, so no certificates are looked at: begin it with "
            "wss://, or leave the context out."
        )
    return context or (True if scheme == "wss" else None)


_T = TypeVar("_T", Said, Transcript)


def _latest(events: Sequence[_T]) -> list[_T]:
    """The last of them, as many as fit into a message."""
    room, count = MOST_HISTORY, 0
    for event in reversed(events):
        room -= len(write(event))
        if room < 0:
            break
        count += 1
    return list(events[len(events) - count :])


async def _end(task: asyncio.Task[None]) -> None:
    """End a task, and raise what it has raised; who is cancelled meanwhile is not kept from it."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
