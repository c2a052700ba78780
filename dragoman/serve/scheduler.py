"""Steps the talks that have new sound, together: whoever waits longest first.

There are one or more lanes, threads on each of which a batch of talks is stepped. A GPU has one,
and large batches; on a CPU a batch costs as much as its talks do one by one, and small nets gain
less from a second thread than from a second lane.

A step of a file takes seconds, and no live talk waits for it: files have a thread of their own,
which yields the processor; where only one thread may work with the model, they are stepped when
nobody live waits.

With more work than machine, all wait longer, hear more at once, and so cost less; what else is
given up then, `pressure` says.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from dragoman.audio.chunk import Chunk
from dragoman.interpreter import Update, step
from dragoman.serve.bell import Pulse
from dragoman.serve.logs import note, place
from dragoman.serve.metrics import Metrics
from dragoman.serve.pressure import Level, Pressure
from dragoman.serve.protocol import Code, Fault
from dragoman.serve.session import Session

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Scheduler:
    """The threads that work with the model, and the talks that want them."""

    def __init__(
        self, metrics: Metrics, batch: int, lanes: int = 1, *, apart: bool = False
    ) -> None:
        """`apart`: files have a thread of their own."""
        self._metrics, self._batch, self._lanes = metrics, batch, lanes
        self._pressure = Pressure()
        self._sessions: dict[Session, None] = {}  # in the order in which they came
        self._busy: set[Session] = set()  # their interpreters are at work
        self._steps: set[asyncio.Task[None]] = set()
        self._worker = ThreadPoolExecutor(lanes, "model")
        self._apart = ThreadPoolExecutor(1, "files", _yield_to_others) if apart else None
        self._file: asyncio.Task[None] | None = None  # that is stepped apart
        self._wake = asyncio.Event()
        self._rest = Pulse()  # somebody is busy no longer

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
    def live(self) -> int:
        """Talks, without the files."""
        return sum(one.live for one in self._sessions)

    @property
    def refusing(self) -> bool:
        """Whether the machine is so far behind that nobody new should be let in."""
        return self._look() >= Level.REFUSING

    async def on_worker(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do what touches the model, and no interpreter that is at work."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, lambda: work(*args, **kwargs))

    async def between_steps(
        self, session: Session, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Do what touches the interpreter of a talk."""
        while session in self._busy:
            await self._rest.next.wait()
        with self._occupied([session]):
            return await self.on_worker(work, *args, **kwargs)

    @contextmanager
    def _occupied(self, sessions: Iterable[Session]) -> Iterator[None]:
        """For so long nobody else touches their interpreters."""
        self._busy.update(sessions)
        try:
            yield
        finally:
            self._busy.difference_update(sessions)
            self._rest.beat()
            self.wake()

    async def run(self) -> None:
        """Step whoever has sound, for ever."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while len(self._steps) < self._lanes and (batch := self._due()):
                    self._steps.add(self._begin(batch, self._worker))
                if self._apart and not self._file and (files := self._waiting(live=False)):
                    self._file = self._begin(files[:1], self._apart)
        finally:
            for task in (*self._steps, self._file):
                if task is not None:
                    task.cancel()
            for worker in (self._worker, self._apart):
                if worker is not None:
                    worker.shutdown(wait=False, cancel_futures=True)

    def _due(self) -> list[Session]:
        """Who has waited longest comes first; who is left out has then waited longer. Lanes that
        are free share those who wait. Files come when nobody live waits: whoever is in a step waits
        for the slowest of it."""
        waiting = self._waiting(live=True)
        if not waiting and self._apart is None:
            waiting = self._waiting(live=False)
        share = -(-len(waiting) // max(1, self._lanes - len(self._steps)))
        return waiting[: min(share, self._batch)]

    def _waiting(self, *, live: bool) -> list[Session]:
        idle = [one for one in self._sessions if one.live is live and one not in self._busy]
        waiting = [(one.due, one) for one in idle if one.due is not None]
        waiting.sort(key=lambda pair: pair[0] or 0.0)
        return [one for _, one in waiting]

    def _begin(self, batch: list[Session], worker: ThreadPoolExecutor) -> asyncio.Task[None]:
        self._busy.update(batch)  # from now on: the task begins later
        task = asyncio.create_task(self._lane(batch, worker))
        task.add_done_callback(self._stepped)
        return task

    async def _lane(self, batch: list[Session], worker: ThreadPoolExecutor) -> None:
        with self._occupied(batch):
            await self._step(batch, worker)

    def _stepped(self, task: asyncio.Task[None]) -> None:
        self._steps.discard(task)
        if task is self._file:
            self._file = None
        self.wake()
        if not task.cancelled() and (error := task.exception()) is not None:
            note("step failed", error=type(error).__name__, where=place(error))

    def _look(self) -> Level:
        """See how far behind the machine is, and let all talks know; files have time."""
        now = time.monotonic()
        late = (now - (one.due or now) for one in self._sessions if one.live)
        level = self._pressure.note(max([0.0, *late]))
        self._metrics.late.set(self._pressure.late)
        self._metrics.level.set(level)
        for session in self._sessions:
            session.degrade(level >= Level.DEGRADED)
            session.interpreter.hasty = level >= Level.HASTY
        return level

    def _shed(self) -> None:
        """The talk that came last goes elsewhere, a file before all others; the only one would be
        no better off there."""
        if len(self._sessions) > 1:
            last = min(reversed(self._sessions), key=lambda one: one.live)
            last.fail(Fault(Code.OVERLOADED, "This machine cannot keep up; go on elsewhere."))
            self.remove(last)
            self._pressure.eased()
            note("shed", session=last.id)

    async def _step(self, batch: list[Session], worker: ThreadPoolExecutor | None = None) -> None:
        if self._look() >= Level.SHEDDING:
            self._shed()
        batch = [session for session in batch if session.due is not None]  # who is not gone by now
        start = time.monotonic()
        for session in batch:
            if session.live:
                self._metrics.wait.observe(max(0.0, start - (session.due or start)))
        chunks = [session.next_chunk() for session in batch]
        if not batch:
            return
        try:
            await self._step_together(batch, chunks, worker or self._worker)
        except Exception as error:  # of the loop itself: nobody's stream can be trusted
            for session in batch:
                self._end(session, error)
        self._metrics.step.observe(time.monotonic() - start)
        self._metrics.batch.observe(len(batch))

    async def _step_together(
        self, batch: list[Session], chunks: list[Chunk], worker: ThreadPoolExecutor
    ) -> None:
        loop, interpreters = asyncio.get_running_loop(), [one.interpreter for one in batch]
        updates = await loop.run_in_executor(worker, step, interpreters, chunks)
        for session, chunk, update in zip(batch, chunks, updates, strict=True):
            if session.finished:  # meanwhile, as it was given up
                continue
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
            if session.live and word.lag_ms is not None:
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


def _yield_to_others() -> None:
    """This thread gets a tenth of what others do of a processor that has not enough for all. Only
    Linux knows threads by such numbers."""
    if sys.platform == "linux":
        own = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + 10)
