"""Times that can be scored, but hardly be right: most such logs count in another way than the
metrics do, and nobody would see it in the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dragoman.metrics.pieces import LongRules
from dragoman.metrics.ragged import Bools, flatten
from dragoman.metrics.segments import Talk
from dragoman.metrics.timings import Rules, Timings, aware_timings, plain_timings

SAME_LENGTH = 100.0
"""Milliseconds: tools round the length of a recording differently."""
SHORTEST = 100.0
"""Milliseconds: nobody says a sentence in less, but a sentence of 99 s is as long in seconds."""
SLOWEST = 500
"""Who has said all after so small a part of the source counts in seconds, a thousandth of it."""
SLACK = 1000.0
"""Milliseconds: the last chunk of a talk is not full, and segments end with some silence."""
ROUNDED = 1.0
"""Milliseconds: computation that shrinks by so little was rounded."""
NO_LENGTH = "a source of no length"


def doubts(plain: Timings, aware: Timings | None, most: float = SAME_LENGTH) -> dict[str, Bools]:
    """What is doubtful, and which of the rows of `plain` it is about; delays may be `most` beyond
    the end of speech."""
    speech = plain.rules.source == "speech"
    lengths, lasts = plain.source_lengths, plain.delays[plain.shape.lasts]
    slack = most if speech else 0.0
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


def doubts_of_talks(
    talks: Sequence[Talk], rules: Rules, long_rules: LongRules
) -> dict[str, list[int]]:
    """What is doubtful of whole talks or of their segments, and which segments it is about."""
    plain = plain_timings([talk.instance for talk in talks], rules)
    found = {
        what: [segment.index for row in plain.rows[rows] for segment in talks[row].segments]
        for what, rows in doubts(plain, aware_timings(plain), SLACK).items()
    }
    found["an end beyond that of their recording (segments are in seconds)"] = [
        segment.index
        for talk in talks
        for segment in talk.segments
        if talk.instance.source_length > 0
        and 1000 * segment.end - long_rules.zero_of(talk) > talk.instance.source_length + SLACK
    ]
    found[NO_LENGTH] = [
        segment.index for talk in talks for segment in talk.segments if not segment.duration
    ]
    found["a beginning before that of the segment above them"] = [
        later.index
        for talk in talks
        for above, later in pairwise(talk.segments)
        if later.offset < above.offset
    ]
    return {what: sorted(indices) for what, indices in found.items() if indices}


def _shrinking(aware: Timings) -> Bools:
    """Where less was computed until a unit than until the one before it. [rows]"""
    if not len(aware.rows):
        return np.zeros(0, dtype=bool)
    elapsed = flatten([instance.elapsed or instance.delays for instance in aware.instances])
    spent = elapsed - aware.delays
    steps = spent - aware.shape.previous(spent)
    steps[aware.shape.firsts] = 0.0
    return aware.shape.smallest(steps) < -ROUNDED
