"""What is done again and again, and takes longer each time: no more than a tenth of all time."""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 0.1


class Sparing:
    """Does something now, unless it has been done just before."""

    def __init__(self, do: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._do, self._clock = do, clock
        self._done, self._cost = clock(), 0.0

    def __call__(self, *, must: bool = False) -> None:
        """`must`: whether or not it is time."""
        begun = self._clock()
        if must or self._cost <= SHARE * (begun - self._done):
            self._do()
            self._done = self._clock()
            self._cost = self._done - begun
