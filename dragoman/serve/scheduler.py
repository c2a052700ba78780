"""Steps the talks that have new sound, together, on one thread: whoever waits longest first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from dragoman.audio.chunk import Chunk
from dragoman.interpreter import step
from dragoman.serve.logs import note
from dragoman.serve.metrics import Metrics
from dragoman.serve.session import Session

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Scheduler:
    """The one thread that works with the model, and the talks that want it."""

    def __init__(self, metrics: Metrics, batch: int) -> None:
        self._metrics, self._batch = metrics, batch
        self._sessions: set[Session] = set()
        self._worker = ThreadPoolExecutor(1, "model")
        self._wake = asyncio.Event()

    def add(self, session: Session) -> None:
        self._sessions.add(session)
        self._count()

    def remove(self, session: Session) -> None:
        self._sessions.discard(session)
        self._count()

    def wake(self) -> None:
        """Somebody has new sound."""
        self._wake.set()

    async def on_worker(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do what touches the model or an interpreter, between two steps."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, lambda: work(*args, **kwargs))

    async def run(self) -> None:
        """Step whoever has sound, for ever."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while batch := self._due():
                    await self._step(batch)
        finally:
            self._worker.shutdown(wait=False, cancel_futures=True)

    def _due(self) -> list[Session]:
        """Who has waited longest comes first; who is left out has then waited longer."""
        waiting = [(one.due, one) for one in self._sessions if one.due is not None]
        waiting.sort(key=lambda pair: pair[0] or 0.0)
        return [one for _, one in waiting[: self._batch]]

    async def _step(self, batch: list[Session]) -> None:
        start = time.monotonic()
        for session in batch:
            self._metrics.wait.observe(start - (session.due or start))
        chunks = [session.next_chunk() for session in batch]
        try:
            await self._step_together(batch, chunks)
        except Exception as error:  # of the loop itself: nobody's stream can be trusted
            for session in batch:
                self._end(session, error)
        self._metrics.step.observe(time.monotonic() - start)
        self._metrics.batch.observe(len(batch))

    async def _step_together(self, batch: list[Session], chunks: list[Chunk]) -> None:
        updates = await self.on_worker(step, [one.interpreter for one in batch], chunks)
        for session, chunk, update in zip(batch, chunks, updates, strict=True):
            if update.error is not None:
                self._end(session, update.error)
                continue
            before = len(session.words)
            session.take(chunk, update)
            for word in session.words[before:]:
                if word.lag_ms is not None:
                    self._metrics.lag.observe(word.lag_ms / 1000)
            if session.finished:
                self.remove(session)
                note("finished", session=session.id, words=len(session.words))

    def _end(self, session: Session, error: Exception) -> None:
        session.fail()
        self.remove(session)
        note("failed", session=session.id, error=type(error).__name__)

    def _count(self) -> None:
        self._metrics.streams.set(len(self._sessions))

    def __len__(self) -> int:
        return len(self._sessions)
