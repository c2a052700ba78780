"""How often one address may connect."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from dragoman.serve.protocol import Code, Fault

MINUTE = 60.0
MOST_ADDRESSES = 10_000
"""That are remembered; should more come in a minute, those that came first are forgotten."""


class Visits:
    """The connections of the last minute, by address."""

    def __init__(self, most: int, timer: Callable[[], float] = time.monotonic) -> None:
        self._most, self._timer = most, timer
        self._visits: dict[str, deque[float]] = {}

    def note(self, address: str) -> None:
        """Somebody comes; a fault if that is too often."""
        now = self._timer()
        visits = self._visits.pop(address, deque())
        while visits and visits[0] <= now - MINUTE:
            visits.popleft()
        self._visits[address] = visits  # as the newest
        while len(self._visits) > MOST_ADDRESSES:
            del self._visits[next(iter(self._visits))]
        if len(visits) >= self._most:
            raise Fault(Code.TOO_FAST, f"At most {self._most} connections a minute; try later.")
        visits.append(now)
