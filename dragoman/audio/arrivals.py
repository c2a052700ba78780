"""Sound that somebody sends through a pipe: taken when it comes, whatever the listener is doing.

A thread of its own reads the pipe and stamps what arrives. To a listener who is slower than the
speaker, the steps that wait come as one, as from a microphone.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dragoman.audio.catch_up import caught_up
from dragoman.audio.chunk import Chunk, Chunker

BLOCK_MS = 50.0
"""What a pipe is read in: so much at most is lost of a step when the listener is interrupted."""
AHEAD = 1.0
"""Seconds by which a pipe may be faster than speech. Who sends a whole recording at once is no
speaker: the rest waits in the pipe until the listener asks for it."""
BACKLOG = 60.0
"""Seconds that wait for a slow listener; then the sender waits, too."""
POLL = 0.1


class Arrivals:
    """One pipe being listened to.

    arrivals = Arrivals(open_audio("-", step_ms=BLOCK_MS), step_ms=500)
    for chunk in arrivals.chunks(): ...      # until its end, or arrivals.stop()
    """

    def __init__(
        self,
        blocks: Iterable[Chunk],
        step_ms: float,
        *,
        realtime: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to read. `blocks` are short. `realtime` holds back what comes faster than speech.

        `clock` tells the seconds that the chunks are stamped with.
        """
        self._blocks, self._realtime, self._clock = blocks, realtime, clock
        self._chunker, self._step = Chunker(step_ms), step_ms / 1000
        self._arrived: deque[Chunk | BaseException] = deque()
        self._news, self._asked, self._stopped = (threading.Event() for _ in range(3))
        threading.Thread(target=self._read, name="pipe", daemon=True).start()

    def stop(self) -> None:
        """End it: what has arrived still comes, then the last chunk. From any thread."""
        self._stopped.set()
        self._news.set()

    def chunks(self) -> Iterator[Chunk]:
        """The steps, stamped with their arrival; those that wait while we are busy come as one."""
        return caught_up(self._steps(), self._another_waits)

    def _read(self) -> None:
        """The thread: everything that comes, an error last."""
        began, spoken = self._clock(), 0.0
        try:
            for block in self._blocks:
                spoken += block.seconds
                if self._realtime:
                    time.sleep(max(0.0, began + spoken - self._clock()))
                self._arrived.append(replace(block, arrival=self._clock()))
                self._news.set()
                self._wait_while(lambda: self._waiting() > BACKLOG)
                if spoken - (self._clock() - began) > AHEAD:
                    self._wait_while(lambda: not self._asked.is_set())
        except BaseException as error:  # the listener's to tell
            self._arrived.append(error)
        self._news.set()

    def _wait_while(self, unwanted: Callable[[], bool]) -> None:
        while unwanted() and not self._stopped.is_set():
            self._asked.wait(POLL)

    def _steps(self) -> Iterator[Chunk]:
        arrival = 0.0
        for block in self._taken():
            arrival = arrival if block.arrival is None else block.arrival
            yield from self._chunker.feed(block.samples, arrival, original=block.original)
        yield self._chunker.finish(arrival)

    def _taken(self) -> Iterator[Chunk]:
        """The blocks in their order, until the last or until we are stopped."""
        while True:
            while not self._arrived and not self._stopped.is_set():
                self._asked.set()
                self._news.wait(POLL)
                self._news.clear()
            self._asked.clear()
            if not self._arrived:
                return
            block = self._arrived.popleft()
            if isinstance(block, BaseException):
                raise block
            yield block
            if block.last:
                return

    def _waiting(self) -> float:
        """Seconds that have arrived and were not taken."""
        return sum(block.seconds for block in self._arrived.copy() if isinstance(block, Chunk))

    def _another_waits(self) -> bool:
        """Whether the next step is there already, or the end."""
        newest = self._arrived[-1] if self._arrived else None
        if isinstance(newest, BaseException):  # what was heard is worked on before it is told
            return False
        return self._waiting() >= self._step or bool(newest and newest.last)
