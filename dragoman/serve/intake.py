"""The sound of a talk on its way in: counted in samples, cut into steps, waiting to be heard."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

import numpy as np

from dragoman.audio.catch_up import LONGEST, joined
from dragoman.audio.chunk import RATE, Chunk, Chunker, Samples
from dragoman.audio.resample import Resampler
from dragoman.clock import RealClock
from dragoman.serve.past import Past
from dragoman.serve.protocol import Code, Fault

MOST_WAITING = 30.0
"""Seconds of sound that wait; a client that sends faster than that is heard waits too."""
BURST = 60.0
"""Seconds of sound that a client may be ahead of its speaker before its pace counts."""


class Intake:
    """Samples at the client's rate go in, chunks of one step or more come out."""

    def __init__(self, rate: int, step_ms: float, clock: RealClock, past: Past) -> None:
        self.sample = past.sample
        """The next that is wanted: all before it have arrived."""
        self.ended = False
        self._rate, self._clock, self._past = rate, clock, past
        self._resampler, self._chunker = Resampler(rate), Chunker(step_ms)
        self._waiting: deque[tuple[float, Chunk]] = deque()  # and when each was spoken
        self._began, self._queued = clock.timer(), 0.0  # seconds of sound, in all
        self._space = asyncio.Event()  # for more sound
        self._space.set()
        self._again: list[Samples] | None = [] if past.recalled else None
        """Sound of which words were said elsewhere."""

    @property
    def due(self) -> float | None:
        """When the first sound that waits was spoken, on the monotonic clock; None: none waits.

        Of sound that comes faster than anybody speaks it is later than now: whoever speaks live
        goes before.
        """
        return self._waiting[0][0] if self._waiting else None

    @property
    def waiting_seconds(self) -> float:
        return sum(chunk.seconds for _, chunk in self._waiting)

    @property
    def seconds(self) -> float:
        """Of sound that have arrived here."""
        return (self.sample - self._past.sample) / self._rate

    def hear(self, first: int, samples: Samples) -> None:
        """Sound from its sample `first` on; what has arrived before is not heard again."""
        if first > self.sample:
            raise Fault(
                Code.SOUND, f"Sound is missing: sample {self.sample} comes next, not {first}."
            )
        fresh = samples[self.sample - first :]
        self.sample += len(fresh)
        self._sound(self._resampler.feed(fresh))

    def end(self) -> None:
        """No more will come."""
        self._sound(self._resampler.finish())
        self._release_again()
        self.ended = True
        self._queue([self._chunker.finish(self._now())])

    def flush(self) -> None:
        """What was heard so far shall be said, as after a pause."""
        self._release_again()
        held = self._chunker.finish().samples
        asked = self._waiting and self._waiting[-1][1].closes
        if len(held) or not asked:  # who asks again and again, before it is heard, has asked once
            self._queue([Chunk(held, False, self._now(), closes=True)])

    def cut_into(self, step_ms: float) -> None:
        """Chunks are of this length from now on."""
        held, self._chunker = self._chunker.finish().samples, Chunker(step_ms)
        self._queue(self._chunker.feed(held, self._now()))

    def next_chunk(self) -> Chunk:
        """All that waits as one chunk: a step costs nearly the same however much is heard."""
        chunks = [self._waiting.popleft()[1]]
        seconds = chunks[0].seconds
        while self._waiting and seconds + self._waiting[0][1].seconds <= LONGEST:
            chunks.append(self._waiting.popleft()[1])
            seconds += chunks[-1].seconds
        if self.waiting_seconds < MOST_WAITING:
            self._space.set()
        return joined(chunks)

    def clear(self) -> None:
        """Nobody will hear what waits."""
        self._waiting.clear()
        self._space.set()

    async def have_space(self, fastest: float) -> None:
        """Wait until more sound may come: until less waits, and the pace is not too fast."""
        await self._space.wait()
        too_early = (self.seconds - BURST) / fastest - self._now()
        if too_early > 0 and not self.ended:
            await asyncio.sleep(too_early)

    def _now(self) -> float:
        return self._clock.now() / 1000

    def _sound(self, samples: Samples) -> None:
        """Sound at our own rate: into steps, or into the one chunk that is heard again."""
        if self._again is None:
            self._queue(self._chunker.feed(samples, self._now()))
            return
        self._again.append(samples)
        if self.sample >= self._past.until:
            self._release_again()

    def _release_again(self) -> None:
        if self._again:
            self._queue([Chunk(np.concatenate(self._again), False, self._now())])
        self._again = None

    def _queue(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            self._queued += len(chunk.samples) / RATE
            spoken = max(self._clock.timer(), self._began + self._queued)
            self._waiting.append((spoken, chunk))
        if self.waiting_seconds >= MOST_WAITING:
            self._space.clear()
