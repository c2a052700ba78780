"""One talk: its sound on the way in, its words on the way out, kept for whoever resumes it.

A session is touched by the event loop alone. Its interpreter is touched by the scheduler's worker
alone; between them go chunks and updates.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Protocol

from dragoman.audio.catch_up import LONGEST, joined
from dragoman.audio.chunk import Chunk, Chunker, Samples
from dragoman.audio.resample import Resampler
from dragoman.clock import RealClock
from dragoman.interpreter import Interpreter, Update
from dragoman.lag import Lag, lived_ms
from dragoman.serve.news import News
from dragoman.serve.protocol import Code, Fault, Said, Summary, Transcript
from dragoman.setup import Setup
from dragoman.text.word_times import WordTimes

if TYPE_CHECKING:
    from dragoman.serve.speech import Narrator

MOST_WAITING = 30.0
"""Seconds of sound that wait; a client that sends faster than that is heard waits too."""


class Listener(Protocol):
    """The connection that a talk has at the moment."""

    def replaced(self) -> None:
        """Another one has taken over."""


class Session:
    """A talk, which may outlive the connection it began on."""

    def __init__(
        self, interpreter: Interpreter, setup: Setup, clock: RealClock, rate: int, longest: float
    ) -> None:
        self.interpreter, self.setup = interpreter, setup
        self.id, self.resume_token = secrets.token_hex(8), secrets.token_urlsafe(24)
        self.rate = rate
        self.sample = 0
        """The next that is wanted: all before it have arrived."""
        self.words: list[Said] = []
        self.transcripts: list[Transcript] = []
        self.interim = ""
        self.summary: Summary | None = None
        self.fault: Fault | None = None
        self.stopped = False
        self.draining = False
        self.audience = 0  # listeners in the room of this talk
        self.voice: Narrator | None = None
        self.listener: Listener | None = None
        self.partings = 0  # how often a connection was lost
        self.news = News()
        """There is something to tell."""
        self.room = asyncio.Event()
        """There is room for more sound."""
        self.room.set()
        self._degraded = False
        self._clock, self._longest = clock, longest
        self._resampler, self._chunker = Resampler(rate), Chunker(setup.step_ms)
        self._waiting: deque[tuple[float, Chunk]] = deque()
        self._times, self._source_times = WordTimes(), WordTimes()
        self._written_ms = 0.0  # of the sound that was written down so far
        self._lag = Lag()

    @property
    def state(self) -> Literal["listening", "degraded", "draining"]:
        if self.draining:
            return "draining"
        return "degraded" if self._degraded else "listening"

    @property
    def finished(self) -> bool:
        return self.summary is not None or self.fault is not None

    @property
    def due(self) -> float | None:
        """Since when sound waits, on the monotonic clock; None: none does."""
        return self._waiting[0][0] if self._waiting and not self.finished else None

    @property
    def waiting_seconds(self) -> float:
        return sum(chunk.seconds for _, chunk in self._waiting)

    @property
    def now_ms(self) -> float:
        """Since the talk began, on the clock on the wall."""
        return self._clock.now()

    def words_after(self, number: int) -> list[Said]:
        """The words whose numbers are higher than this."""
        return self.words[number:]

    def transcripts_after(self, number: int) -> list[Transcript]:
        """The same of what was written down."""
        return self.transcripts[number:]

    def opened_by(self, token: str) -> bool:
        return hmac.compare_digest(self.resume_token.encode(), token.encode())

    def hear(self, first: int, samples: Samples) -> None:
        """Sound from its sample `first` on; what has arrived before is not heard again."""
        if self.stopped or self.finished:
            return
        if first > self.sample:
            raise Fault(
                Code.SOUND, f"Sound is missing: sample {self.sample} comes next, not {first}."
            )
        fresh = samples[self.sample - first :]
        self.sample += len(fresh)
        self._queue(self._chunker.feed(self._resampler.feed(fresh), self._now()))
        self.news.set()
        if self.sample > self._longest * self.rate:
            self.stop()
            raise Fault(Code.TOO_LONG, f"A talk has at most {self._longest:g} s; this one ends.")

    def stop(self) -> None:
        """The speaker has ended. May be called twice."""
        if self.stopped:
            return
        self.stopped, now = True, self._now()
        self._queue(self._chunker.feed(self._resampler.finish(), now))
        self._queue([self._chunker.finish(now)])
        self.news.set()

    def change(self, setup: Setup) -> None:
        """Another policy, which the interpreter has already, and perhaps another step."""
        self.setup = setup
        if not self.stopped:
            held, self._chunker = self._chunker.finish().samples, Chunker(setup.step_ms)
            self._queue(self._chunker.feed(held, self._now()))

    def next_chunk(self) -> Chunk:
        """All that waits as one chunk: a step costs nearly the same however much is heard."""
        chunks = [self._waiting.popleft()[1]]
        seconds = chunks[0].seconds
        while self._waiting and seconds + self._waiting[0][1].seconds <= LONGEST:
            chunks.append(self._waiting.popleft()[1])
            seconds += chunks[-1].seconds
        self._degraded = seconds > 2.5 * self.setup.step_ms / 1000
        if self.waiting_seconds < MOST_WAITING:
            self.room.set()
        return joined(chunks)

    def take(self, chunk: Chunk, update: Update) -> None:
        """What a chunk led to."""
        now = update.hearing.audio_ms
        age = (now - self._written_ms) / 2  # the middle of the sound since the last of them
        for word in self._source_times.place(update.transcript, now, age):
            number, at_ms = len(self.transcripts) + 1, round(1000 * word.start, 1)
            self.transcripts.append(Transcript(number, word.text, at_ms, update.language))
        if update.transcript:
            self._written_ms = now
        lag_ms, end_ms = lived_ms(update), round(update.hearing.end_ms, 1)
        lag_ms = None if lag_ms is None else round(lag_ms, 1)
        for word in self._times.place(update.said, now, update.lag_ms):
            number, at_ms = len(self.words) + 1, round(1000 * word.start, 1)
            self.words.append(Said(number, word.text, at_ms, end_ms, lag_ms))
        self.interim = update.interim
        self._lag.take(update)
        if chunk.last:
            lag = self._lag
            mean_ms = None if lag.aware_ms is None else round(lag.aware_ms, 1)
            self.summary = Summary(
                len(self.words), lag.audio_ms, mean_ms, round(lag.load, 4), update.language
            )
        self.news.set()

    def fail(self) -> None:
        """The interpreter could not go on; why is for the log of the server."""
        self.fault = Fault(Code.FAILED, "The interpreter could not go on with this talk.")
        self._waiting.clear()
        self.room.set()
        self.news.set()

    def attach(self, listener: Listener) -> None:
        """A connection serves this talk from now on; the one before does not."""
        before, self.listener = self.listener, listener
        if before is not None:
            before.replaced()

    def _now(self) -> float:
        return self._clock.now() / 1000

    def _queue(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            self._waiting.append((time.monotonic(), chunk))
        if self.waiting_seconds >= MOST_WAITING:
            self.room.clear()
