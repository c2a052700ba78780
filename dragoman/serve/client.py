"""A client in Python: a talk that goes on over lost connections and lost processes.

async for event in Talk("ws://127.0.0.1:8020/v1/interpret", Start(source="de")).run(sound): ...
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from dragoman.audio import opus
from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.serve.protocol import (
    Audio,
    Code,
    Elsewhere,
    Error,
    Event,
    Heard,
    Ready,
    Resume,
    Said,
    Start,
    Stop,
    Summary,
    Transcript,
    pcm16,
    read_event,
    write,
    write_packet,
)

PASSING = {Code.FULL, Code.OVERLOADED, Code.DRAINING, Code.IDLE, Code.TOO_FAST}
"""What another attempt, later or with another process, may overcome."""
GOES_ON = {Code.POLICY, Code.UNFIT, Code.TOO_LONG}
"""Errors after which a talk that has begun goes on."""
MOST_HISTORY = 1000  # events that are told to another process


class TalkError(DragomanError):
    """The server has ended the talk; `code` says why."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class _Kept:
    """The sound that may have to be sent again: frames, each with the sample after its last.

    `before` samples are sent again with the one that is wanted: a decoder of Opus must have heard
    them to go on.
    """

    before: int
    frames: deque[tuple[int, bytes]] = field(default_factory=deque)
    end: int = 0
    ended: bool = False  # no more will come
    more: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, count: int, data: bytes) -> None:
        """So many samples, encoded."""
        if count:
            frame = write_packet(self.end, data)
            self.end += count
            self.frames.append((self.end, frame))
            self.more.set()

    def finish(self) -> None:
        self.ended = True
        self.more.set()

    def forget(self, before: int) -> None:
        """Drop the frames that nobody will ask for."""
        while self.frames and self.frames[0][0] <= before - self.before:
            self.frames.popleft()

    def since(self, sample: int) -> list[tuple[int, bytes]]:
        """The frames that end after a sample."""
        return [frame for frame in self.frames if frame[0] > sample]


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
        """`patience`: seconds without a server after which the talk is given up."""
        self._url, self._start, self._token = url, start or Start(), token
        self._patience, self._context = patience, context
        self._encode = _encoder(self._start.audio)
        self._kept = _Kept(opus.BEFORE if self._start.audio.encoding == "opus" else 0)
        self._ready: Ready | None = None
        self._heard = Heard(0, 0, 0, 0)
        self.words: list[Said] = []
        self.transcripts: list[Transcript] = []
        self.connections = 0
        """How many there were, the first among them."""

    async def run(self, sound: AsyncIterable[Samples]) -> AsyncIterator[Event]:
        """Send sound, at its own pace, and tell what the server tells, until the summary.

        Sound are floats in [-1, 1] at the rate that `start` says; for Opus at 48 kHz.
        """
        feeding = asyncio.create_task(self._feed(sound))
        try:
            since = time.monotonic()
            while True:
                try:
                    async for event in self._connection():
                        since = time.monotonic()
                        yield event
                        if isinstance(event, Summary):
                            return
                except (OSError, WebSocketException):
                    pass
                if time.monotonic() - since > self._patience:
                    raise DragomanError(f"No server at {self._url} goes on with this talk.")
                await asyncio.sleep(min(1.0, 0.05 + (time.monotonic() - since) / 4))
        finally:
            await _end(feeding)

    async def _connection(self) -> AsyncIterator[Event]:
        """What one connection tells."""
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        sending: asyncio.Task[None] | None = None
        try:
            async with connect(
                self._url,
                additional_headers=headers,
                compression=None,
                max_size=None,
                ssl=self._context,
                open_timeout=10,
            ) as socket:
                await socket.send(write(self._first()))
                async for text in socket:
                    event = read_event(text)
                    if isinstance(event, Error):
                        self._judge(event)
                    if isinstance(event, Ready):
                        self._ready = event
                        self.connections += 1
                        sending = asyncio.create_task(self._send(socket, event.sample))
                    if self._is_new(event):
                        yield event
        finally:
            if sending is not None:
                await _end(sending)

    def _first(self) -> Start | Resume:
        """The first message of a connection."""
        if self._ready is None:
            return self._start
        heard = self._heard
        said = self.words[-MOST_HISTORY:]
        written = self.transcripts[-MOST_HISTORY:]
        elsewhere = Elsewhere(self._start, heard.keep, heard.word, heard.transcript, said, written)
        last = self.words[-1].word if self.words else 0
        last_written = self.transcripts[-1].number if self.transcripts else 0
        ready = self._ready
        return Resume(
            ready.session, ready.resume_token, last, last_written, heard.sample, elsewhere
        )

    def _judge(self, error: Error) -> None:
        """Raise what no other attempt can mend."""
        if error.code in PASSING or (self._ready is not None and error.code in GOES_ON):
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

    async def _feed(self, sound: AsyncIterable[Samples]) -> None:
        async for block in sound:
            for count, data in self._encode(np.asarray(block, np.float32)):
                self._kept.add(count, data)
        for count, data in self._encode(None):
            self._kept.add(count, data)
        self._kept.finish()

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


def _encoder(audio: Audio) -> Callable[[Samples | None], Iterable[tuple[int, bytes]]]:
    """How samples become frames, each with its count; None: the sound has ended."""
    if audio.encoding == "pcm16":
        return lambda samples: [] if samples is None else [(len(samples), pcm16(samples))]
    encoder = opus.OpusEncoder()

    def encode(samples: Samples | None) -> Iterable[tuple[int, bytes]]:
        packets = encoder.finish() if samples is None else encoder.feed(samples)
        return [(opus.count_samples(packet), packet) for packet in packets]

    return encode


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
