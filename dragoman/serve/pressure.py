"""How far behind the machine is, and what is given up for that: first for all talks together.

Steps that wait become longer by themselves: all that waits is heard at once. When that does not
help, searches follow one text instead of several; then nobody new is let in; and should even that
not help, since another program has taken the machine, the talk that came last goes elsewhere. So
how far behind the others are does not grow without bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import IntEnum

SETTLING = 3.0
"""Seconds over which it is averaged: one slow step is no overload."""


class Level(IntEnum):
    """What is given up; each with all before it."""

    NORMAL = 0
    DEGRADED = 1  # steps are longer than asked for
    HASTY = 2  # searches follow one text
    REFUSING = 3  # nobody new is let in
    SHEDDING = 4  # the last to come is sent elsewhere


LATE = {Level.DEGRADED: 1.0, Level.HASTY: 2.0, Level.REFUSING: 4.0, Level.SHEDDING: 10.0}
"""Seconds that sound waits beyond its step, on average, from which on a level is reached. It is
left at half of that, so that it does not flicker."""


class Pressure:
    """How long sound waits before it is heard."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._noted = timer()
        self.late = 0.0
        """Seconds, averaged."""
        self.level = Level.NORMAL

    def note(self, late: float) -> Level:
        """Sound waits, or waited, so long; the level from now on."""
        now = self._timer()
        share = -math.expm1(-(now - self._noted) / SETTLING)
        self._noted = now
        self.late += share * (max(0.0, late) - self.late)
        level = Level.NORMAL
        for one, limit in LATE.items():
            if self.late > (limit / 2 if one <= self.level else limit):
                level = one
        self.level = level
        return level

    def eased(self) -> None:
        """A talk is gone: it is to be seen what that helps before the next one goes."""
        self.late = LATE[Level.REFUSING]
        self.level = Level.REFUSING
