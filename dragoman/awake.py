"""The time for which this process runs: not that for which it was stopped, or the machine slept."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import cache

BEAT = 0.1
"""Seconds between two looks at the clock."""
STOPPED = 1.0
"""Seconds for which nobody looked: so long a thread waits for its turn on no machine that runs."""


class Awake:
    """Seconds from any moment on, by a clock that somebody looks at all the time.

    Work that lets no other thread look (C code of somebody's own) uses the processor meanwhile.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        used: Callable[[], float] = time.process_time,
    ) -> None:
        self._clock, self._last = clock, clock()
        self._used, self._last_used = used, used()
        self._stopped = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        with self._lock:
            now, used = self._clock(), self._used()
            gap = now - self._last
            if gap > STOPPED and used - self._last_used < gap / 2:
                self._stopped += gap
            self._last, self._last_used = now, used
            return now - self._stopped


@cache
def awake() -> Awake:
    """The clock of this process; from the first call on a thread looks at it."""
    timer = Awake()

    def beat() -> None:
        while True:
            time.sleep(BEAT)
            timer()

    threading.Thread(target=beat, name="awake", daemon=True).start()
    return timer


if hasattr(os, "register_at_fork"):  # a process that was forked off has no such thread
    os.register_at_fork(after_in_child=awake.cache_clear)
