"""Steps the talks that have new sound, together, on one thread: whoever waits longest first.

With more work than machine, all wait longer, hear more at once, and so cost less; what else is
given up then, `pressure` says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from dragoman.audio.chunk import Chunk
from dragoman.interpreter import Update, step
from dragoman.serve.logs import note, place
from dragoman.serve.metrics import Metrics
from dragoman.serve.pressure import Level, Pressure
from dragoman.serve.protocol import Code, Fault
from dragoman.serve.session import Session

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Scheduler:
    """The one thread that works with the model, and the talks that want it."""

    def __init__(self, metrics: Metrics, batch: int) -> None:
        self._metrics, self._batch = metrics, batch
        self._pressure = Pressure()
        self._sessions: dict[Session, None] = {}  # in the order in which they came
        self._worker = ThreadPoolExecutor(1, "model")
        self._wake = asyncio.Event()

    def add(self, session: Session) -> None:
        self._sessions[session] = None
        self._count()

    def remove(self, session: Session) -> None:
        self._sessions.pop(session, None)
        self._count()

    def wake(self) -> None:
        """Somebody has new sound."""
        self._wake.set()

    @property
    def refusing(self) -> bool:
        """Whether the machine is so far behind that nobody new should be let in."""
        return self._look() >= Level.REFUSING

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

    def _look(self) -> Level:
        """See how far behind the machine is, and let all talks know."""
        now = time.monotonic()
        level = self._pressure.note(max([0.0, *(now - (s.due or now) for s in self._sessions)]))
        self._metrics.late.set(self._pressure.late)
        self._metrics.level.set(level)
        for session in self._sessions:
            session.degrade(level >= Level.DEGRADED)
            session.interpreter.hasty = level >= Level.HASTY
        return level

    def _shed(self) -> None:
        """The talk that came last goes elsewhere; the only one would be no better off there."""
        if len(self._sessions) > 1:
            last = next(reversed(self._sessions))
            last.fail(Fault(Code.OVERLOADED, "This machine cannot keep up; go on elsewhere."))
            self.remove(last)
            self._pressure.eased()
            note("shed", session=last.id)

    async def _step(self, batch: list[Session]) -> None:
        if self._look() >= Level.SHEDDING:
            self._shed()
            batch = [session for session in batch if session in self._sessions]
        start = time.monotonic()
        for session in batch:
            self._metrics.wait.observe(max(0.0, start - (session.due or start)))
        chunks = [session.next_chunk() for session in batch]
        if not batch:
            return
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
            try:
                self._take(session, chunk, update)
            except Exception as error:  # of this talk; the others have theirs
                self._end(session, error)

    def _take(self, session: Session, chunk: Chunk, update: Update) -> None:
        before = len(session.words)
        session.take(chunk, update)
        for word in session.words[before:]:
            if word.lag_ms is not None:
                self._metrics.lag.observe(word.lag_ms / 1000)
        if session.finished:
            self.remove(session)
            note("finished", session=session.id, words=len(session.words))

    def _end(self, session: Session, error: Exception) -> None:
        """Whoever runs the server reads what it was and where; what was said is not told."""
        session.fail()
        self.remove(session)
        cause = error.__cause__ or error.__context__
        note(
            "failed",
            session=session.id,
            error=type(error).__name__,
            where=place(error),
            cause=type(cause).__name__ if cause else None,
            pressure=self._pressure.level.name.lower(),
            talks=len(self._sessions),
            heard_s=round(session.sample / session.rate, 1),
            stopped=session.stopped,
        )

    def _count(self) -> None:
        self._metrics.streams.set(len(self._sessions))

    def __len__(self) -> int:
        return len(self._sessions)
