"""Times that can be scored, but hardly be right: most such logs count in another way than the
metrics do, and nobody would see it in the numbers."""

from __future__ import annotations

import numpy as np

from dragoman.metrics.ragged import Bools, flatten
from dragoman.metrics.timings import Timings

SAME_LENGTH = 100.0
"""Milliseconds: tools round the length of a recording differently."""
SHORTEST = 100.0
"""Milliseconds: nobody says a sentence in less, but a sentence of 99 s is as long in seconds."""
SLOWEST = 500
"""Who has said all after so small a part of the source counts in seconds, a thousandth of it."""
ROUNDED = 1.0
"""Milliseconds: computation that shrinks by so little was rounded."""


def doubts(plain: Timings, aware: Timings | None) -> dict[str, Bools]:
    """What is doubtful, and which of the rows of `plain` it is about."""
    speech = plain.rules.source == "speech"
    lengths, lasts = plain.source_lengths, plain.delays[plain.shape.lasts]
    slack = SAME_LENGTH if speech else 0.0
    found = {"delays beyond the end of their source": (lengths > 0) & (lasts > lengths + slack)}
    if speech:
        found |= {
            "a source below 0.1 s (times are in milliseconds)": (lengths > 0)
            & (lengths < SHORTEST),
            f"all delays in a {SLOWEST}th of their source (times are in milliseconds)": (lasts > 0)
            & (lasts * SLOWEST < lengths),
        }
    if aware is not None and plain.rules.compat is None:
        shrinking = np.isin(plain.rows, aware.rows[_shrinking(aware)])
        found["elapsed times that are no sums of all computation so far"] = shrinking
    return found


def _shrinking(aware: Timings) -> Bools:
    """Where less was computed until a unit than until the one before it. [rows]"""
    if not len(aware.rows):
        return np.zeros(0, dtype=bool)
    elapsed = flatten([instance.elapsed or instance.delays for instance in aware.instances])
    spent = elapsed - aware.delays
    steps = spent - aware.shape.previous(spent)
    steps[aware.shape.firsts] = 0.0
    return aware.shape.smallest(steps) < -ROUNDED
