"""Speakers in several processes on one device, which all step at the same moment.

Python runs on one core, whatever the device could do beside it: a few hundred streams keep that
core busy. Several identical processes share a GPU as they would behind a proxy.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Protocol

from benchmarks.trial import Trial


class Streams(Protocol):
    """Streams of one process: `streams.Speakers`."""

    words: int

    def trial(self, count: int, steps: int, ready: Callable[[], object]) -> Trial:
        """So many steps of so many streams, each begun once all processes are `ready`."""
        ...


class Crowd:
    """As many streams in each of several processes."""

    def __init__(self, processes: int, count: int, make: Callable[[int], Streams]) -> None:
        """`count` streams in all; `make` is called in each process, with its share of them."""
        context = get_context("spawn")
        self._barrier = context.Barrier(processes)  # kept: processes find it while it is here
        self.words = 0
        self._pipes: list[Connection] = []
        for _ in range(processes):
            own, other = context.Pipe()
            arguments = (other, self._barrier, make, -(-count // processes))
            context.Process(target=_work, args=arguments, daemon=True).start()
            other.close()  # so that a process that fails is noticed here
            self._pipes.append(own)

    def trial(self, count: int, steps: int) -> Trial:
        """What the steps of `count` streams in all took, in every process."""
        share = -(-count // len(self._pipes))
        for pipe in self._pipes:
            pipe.send((share, steps))
        answers: list[tuple[Trial, int]] = [pipe.recv() for pipe in self._pipes]
        self.words = sum(words for _, words in answers)
        trials = [trial for trial, _ in answers]
        works = [work for trial in trials for work in trial.works]
        processor = sum(trial.processor for trial in trials)
        return Trial(share * len(trials), works, processor, steps, trials[0].step)


def _work(pipe: Connection, barrier: Barrier, make: Callable[[int], Streams], count: int) -> None:
    """One process: it answers until nobody asks any more."""
    try:
        streams = make(count)
        while True:
            share, steps = pipe.recv()
            pipe.send((streams.trial(share, steps, barrier.wait), streams.words))
    except (EOFError, KeyboardInterrupt):
        pass
    finally:
        barrier.abort()  # nobody waits for a process that is gone
