"""Sound that comes asynchronously: taken when it comes, whatever the listener is doing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import suppress

from dragoman.audio.arrays import Sound, frames_of
from dragoman.audio.pcm import Frames

Arrived = tuple[Frames, float]
"""A piece, and the second at which it came."""


class Coming:
    """Pieces of sound; while somebody works on one, the next are taken and wait here.

    If more than a `backlog` (in seconds) waits, the sender waits, too.
    """

    def __init__(
        self, sound: AsyncIterable[Sound], rate: float, clock: Callable[[], float], backlog: float
    ) -> None:
        """`clock` tells the seconds that the pieces are stamped with."""
        self._sound, self._rate, self._clock, self._backlog = sound, rate, clock, backlog
        self._waiting: list[Arrived] = []
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._over = False

    async def batches(self) -> AsyncGenerator[list[Arrived], None]:
        """All that waits, again and again; an error of the source comes last."""
        reader = asyncio.create_task(self._read())
        try:
            while self._waiting or not self._over:
                await self._news.wait()
                self._news.clear()
                self._room.set()
                batch, self._waiting = self._waiting, []
                if batch:
                    yield batch
            await reader
        finally:
            reader.cancel()
            with suppress(asyncio.CancelledError, Exception):  # which was told, or nobody wants
                await reader

    async def _read(self) -> None:
        try:
            async for piece in self._sound:
                self._waiting.append((frames_of(piece), self._clock()))
                self._news.set()
                while self._seconds() > self._backlog:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._over = True
            self._news.set()

    def _seconds(self) -> float:
        return sum(len(frames) for frames, _ in self._waiting) / self._rate
