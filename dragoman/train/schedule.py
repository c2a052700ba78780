"""The learning rate as a function of the step; nothing to save, nothing to restore."""

from __future__ import annotations

import math

from dragoman.train.recipe import Optimiser

FALLING = 0.25  # the share of a trapezoid in which the rate falls


def rate_at(step: int, total: int, optimiser: Optimiser) -> float:
    """The rate of update `step` (from 1): a linear warm-up to the peak, then the schedule."""
    warmup = max(1, optimiser.warmup)
    if step < warmup:
        return optimiser.rate * step / warmup
    match optimiser.schedule:
        case "inverse_sqrt":
            return optimiser.rate * math.sqrt(warmup / step)
        case "cosine":
            done = min(1.0, (step - warmup) / max(1, total - warmup))
            return optimiser.rate * 0.5 * (1 + math.cos(math.pi * done))
        case "trapezoid":  # as long as nobody knows the end, a huge total keeps it at the peak
            return optimiser.rate * min(1.0, max(0.0, (total - step) / max(1, FALLING * total)))
        case "constant":
            return optimiser.rate
