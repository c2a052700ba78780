"""The Python interface: a translator that holds the model, and talks that share it.

with dragoman.Translator(source="de") as translator:
    for event in translator.translate("talk.mp3"): ...
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakSet

import numpy as np

from dragoman.audio.arrays import Sound, frames_of, refuse_bytes
from dragoman.audio.arrivals import AHEAD, BACKLOG
from dragoman.audio.catch_up import caught_up
from dragoman.audio.chunk import RATE, Chunk, Chunker, Samples
from dragoman.audio.coming import Arrived, Coming
from dragoman.audio.mono import Mono
from dragoman.audio.pcm import Frames
from dragoman.audio.resample import Resampler, check_rate, is_number
from dragoman.audio.source import open_audio
from dragoman.awake import awake
from dragoman.clock import RealClock, SimulatedClock
from dragoman.errors import DragomanError
from dragoman.events import Event, Events
from dragoman.policies import make_policy
from dragoman.setup import Setup, System

SURELY_MS = 100.0
"""Nobody waits so many seconds for a translation: a latency from here on is in milliseconds."""

_Kind = TypeVar("_Kind", bound=Event)


class Translator:
    """A model that is loaded once; any number of talks share it, on as many threads as you like."""

    def __init__(
        self,
        setup: Setup | None = None,
        *,
        max_latency: float | None = None,
        transcript: bool = False,
        **changes: Any,
    ) -> None:
        """Load the model. `changes` are fields of a `Setup`: source, target, model, policy, …

        `max_latency` (seconds, 2 by default) takes the policy that was tuned for that lag; a
        `policy` or a `setup` has its own. `transcript`: what is spoken is wanted too, of a model
        that can write it down.
        """
        if setup is not None and not isinstance(setup, Setup):
            raise DragomanError(
                f"A setup is a dragoman.Setup, not {_kind(setup)}; Setup.read(PATH) reads a file, "
                "and settings are given by their names: Translator(source='de')."
            )
        if max_latency is not None and "policy" in changes:
            raise DragomanError("max_latency chooses a policy; give it or policy, not both.")
        chosen = (setup or Setup()).with_changes(**changes)
        if max_latency is not None or setup is None:
            budget_ms = _milliseconds(2.0 if max_latency is None else max_latency)
            chosen = chosen.tuned(budget_ms).with_changes(**changes)
        self._system = System(chosen)
        self._transcript = transcript
        self._work = threading.Lock()  # one talk at a time works on the model
        self._worker = _worker()
        self._awaited: set[Talk] = set()  # that use it
        self._closed = False
        _open.add(self)
        self._system.model  # noqa: B018  what is wrong with it is told now

    @property
    def setup(self) -> Setup:
        return self._system.setup

    def talk(self, *, live: bool = False) -> Talk:
        """Open a talk, to be given sound piece by piece.

        `live`: the speaker talks now, and times are those of the clock on the wall; otherwise they
        are those that a live speaker would have met.
        """
        if self._closed:
            raise DragomanError("This translator is closed; open another.")
        return Talk(self._system, self._work, live, self._transcript)

    def translate(
        self, sound: str | Path | Sound | Iterable[Sound], rate: int = RATE, *, live: bool = False
    ) -> Iterator[Event]:
        """The events of a file ('-': standard input), an array, or pieces of sound of any size.

        `rate` is that of the array or of the pieces.
        """
        if isinstance(sound, str | Path):
            chunks = open_audio(sound, step_ms=self.setup.step_ms)
            sound, rate = (chunk.samples for chunk in chunks), RATE
        refuse_bytes(sound)
        pieces = [sound] if isinstance(sound, np.ndarray) else sound
        if not isinstance(pieces, Iterable):
            raise DragomanError(
                "Sound is the name of a file, an array, or pieces of it one after the other, not "
                f"{_kind(sound)}; what comes asynchronously is for translate_async."
            )
        return _events(self.talk(live=live), pieces, check_rate(rate, "This sound"))

    async def translate_async(
        self, sound: AsyncIterable[Sound], rate: int = RATE, *, live: bool = True
    ) -> AsyncIterator[Event]:
        """The same for pieces that come asynchronously; the work is done on a thread.

        Of a live speaker, what comes meanwhile is heard at once: a slow machine catches up.
        """
        if not isinstance(sound, AsyncIterable):
            raise DragomanError(
                f"translate_async takes what comes asynchronously, not {_kind(sound)}; "
                "that is for translate."
            )
        check_rate(rate, "This sound")
        talk, loop = self.talk(live=live), asyncio.get_running_loop()
        coming = Coming(sound, rate, talk._now, BACKLOG if live else 0.0)
        self._awaited.add(talk)
        try:
            async with aclosing(coming.batches()) as batches:
                async for batch in batches:
                    for event in await loop.run_in_executor(self._worker, talk._hear, batch, rate):
                        yield event
            for event in await loop.run_in_executor(self._worker, talk.finish):
                yield event
        finally:
            self._awaited.discard(talk)
            self._rest()

    def close(self) -> None:
        """Let the model go, once the talks on it have ended. May be called twice."""
        self._closed = True
        self._system = System(self._system.setup)
        self._rest()

    def _rest(self) -> None:
        """End the thread, once nobody will need it."""
        if self._closed and not self._awaited:
            self._worker.shutdown(wait=False)

    def _begin_anew(self) -> None:
        """In a process that was forked off there is none of the threads of the other one, neither
        the worker nor who holds the lock."""
        self._work, self._worker, self._awaited = threading.Lock(), _worker(), set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _worker() -> ThreadPoolExecutor:
    """A thread of our own: those of an event loop others need."""
    return ThreadPoolExecutor(1, "dragoman")


_open: WeakSet[Translator] = WeakSet()


def _after_fork() -> None:
    for translator in _open:
        translator._begin_anew()


if hasattr(os, "register_at_fork"):  # as servers do that load the model once, for all their workers
    os.register_at_fork(after_in_child=_after_fork)


def _events(talk: Talk, pieces: Iterable[Sound], rate: int) -> Iterator[Event]:
    for piece in pieces:
        yield from talk.hear(piece, rate)
    yield from talk.finish()


class Talk:
    """One speaker being translated: sound goes in, events come out.

    As a context manager it is finished at the end: the rest is said, unless an error ended it.
    """

    def __init__(self, system: System, work: threading.Lock, live: bool, transcript: bool) -> None:
        self._setup, self._work = system.setup, work
        self._wall = RealClock() if live else None
        clock = self._wall or SimulatedClock(awake())
        self._interpreter = system.interpreter(clock=clock, transcript=transcript)
        self._chunker = Chunker(system.setup.step_ms)
        self._due: deque[Chunk] = deque()  # to be heard next
        self._ending = False
        self._began: float | None = None  # when the first sound came
        self._seconds = 0.0  # of sound that came
        self._resampler, self._mono, self._rate = Resampler(RATE), Mono(RATE), RATE
        self._events = Events()
        self._calls: list[tuple[type[Event], Callable[[Any], object]]] = []
        self.language = system.setup.source
        """The language that is spoken, once it is known."""

    def on(self, kind: type[_Kind], call: Callable[[_Kind], object]) -> Self:
        """Call a function with every event of a kind (`Event`: of every kind), as it happens."""
        if not (isinstance(kind, type) and issubclass(kind, Event)):
            raise DragomanError(f"{kind!r} is no kind of event; Said is one, and Event is all.")
        if not callable(call):
            raise DragomanError(f"{call!r} cannot be called with an event; give a function.")
        self._calls.append((kind, call))
        return self

    def hear(self, sound: Sound, rate: int = RATE) -> list[Event]:
        """The next piece of sound, of any size and rate, and what it led to."""
        return self._hear([(frames_of(sound), self._now())], rate)

    def _hear(self, pieces: Iterable[Arrived], rate: int) -> list[Event]:
        if self._ending or self._interpreter.finished:
            raise DragomanError("This talk is over; open another one.")
        for frames, arrival in pieces:
            self._began = arrival if self._began is None else self._began
            samples = self._resampled(frames, rate)
            self._seconds += len(frames) / rate
            self._due += self._chunker.feed(samples, arrival)
        return self._take_due()

    def finish(self) -> list[Event]:
        """The speaker has ended: the rest is said. May be called twice."""
        if self._interpreter.finished:
            return []
        if not self._ending:
            self._ending = True
            self._due += self._chunker.feed(self._resampler.finish(), self._now())
            self._due.append(self._chunker.finish(self._now()))
        return self._take_due()

    @property
    def policy(self) -> str:
        """When to speak; may be changed while the talk runs."""
        return self._setup.policy

    @policy.setter
    def policy(self, spec: str) -> None:
        setup = self._setup.with_changes(policy=spec)
        self._interpreter.policy = make_policy(setup.policy)
        self._setup = setup

    def set_max_latency(self, seconds: float) -> None:
        """From now on the policy and the step that were tuned for a lag."""
        tuned = self._setup.tuned(_milliseconds(seconds))
        self.policy = tuned.policy
        self._setup = tuned
        waiting, self._chunker = self._chunker.finish().samples, Chunker(tuned.step_ms)
        self._due += self._chunker.feed(waiting, self._now())

    def _resampled(self, frames: Frames, rate: int) -> Samples:
        if rate == self._rate:
            return self._resampler.feed(self._mono.of(frames))
        new = Resampler(check_rate(rate, "This sound"))
        rest = self._resampler.finish()
        self._resampler, self._mono, self._rate = new, Mono(rate), rate
        return np.concatenate([rest, self._resampled(frames, rate)])

    def _take_due(self) -> list[Event]:
        """Hear what is due. An error of a function that is called waits until all is heard and
        told, so that nothing is lost by it."""
        happened: list[Event] = []
        errors: list[Exception] = []
        for chunk in caught_up(self._steps(), self._another_waits):
            with self._work:
                update = self._interpreter.hear(chunk)
            self.language = update.language or self.language
            for event in self._events.of(update, chunk.last):
                happened.append(event)
                errors += self._call(event)
        if errors:
            raise errors[0]
        return happened

    def _steps(self) -> Iterator[Chunk]:
        while self._due:
            yield self._due.popleft()

    def _another_waits(self) -> bool:
        """Whether the next step of a live speaker is there: who sends a whole recording at once is
        none."""
        if self._wall is None or self._began is None:
            return False
        return bool(self._due) and self._seconds - (self._now() - self._began) < AHEAD

    def _now(self) -> float:
        """Seconds by the clock on the wall, where that counts."""
        return 0.0 if self._wall is None else self._wall.now() / 1000

    def _call(self, event: Event) -> Iterator[Exception]:
        """Call the functions that want an event: what went wrong in them."""
        for kind, call in tuple(self._calls):
            if isinstance(event, kind):
                try:
                    call(event)
                except Exception as error:
                    yield error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.finish()


def _milliseconds(seconds: float) -> float:
    if not is_number(seconds) or seconds <= 0:
        raise DragomanError(f"A latency is a number of seconds above 0, not {seconds!r}.")
    if seconds >= SURELY_MS:
        raise DragomanError(
            f"A latency is in seconds: for {seconds:g} ms write {seconds / 1000:g}."
        )
    return 1000.0 * float(seconds)


def _kind(value: object) -> str:
    return type(value).__name__
