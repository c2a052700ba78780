"""Where training stands, and where it ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dragoman.train.recipe import Steps
from dragoman.train.schedule import FALLING


@dataclass
class State:
    """With the weights and the optimiser, all there is to resume."""

    step: int = 0
    micro_batch: int = 0
    epoch: int = 0
    index: int = 0  # of the next batch in the epoch
    best: float = float("inf")  # what the best validation has measured
    best_by: str = "loss"  # as `steps.best` has it
    best_step: int = 0  # none yet: 0
    stale: int = 0  # validations since the best
    spent: float = 0.0  # seconds of training
    total: int = 0  # updates after which the time is up, once that is known,
    minutes: float = 0.0  # and how long that time was

    def end(self, steps: Steps) -> int:
        """The number of updates, as far as it is known: other settings may have come since."""
        known = self.total and self.minutes == steps.minutes
        return min(self.total, steps.total) if known else steps.total

    def decide(self, steps: Steps) -> bool:
        """With `steps.minutes`, the end is known when it is time for the rate to fall; whether it
        has become known now."""
        limit = 60 * steps.minutes
        if self.minutes == steps.minutes or self.spent < limit * (1 - FALLING):
            return False
        self.minutes = steps.minutes
        self.total = max(self.step, math.ceil(self.step * limit / self.spent)) if limit else 0
        return bool(limit)
