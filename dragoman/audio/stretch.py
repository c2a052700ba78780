"""Speech made faster or slower without a change of pitch (WSOLA: Verhelst and Roelands, 1993).

Pieces are taken from the sound at one pace and laid down at another, overlapping. Of all places
near the wanted one, each piece is taken from where it goes on best from the one before it, so that
the waves of a voice stay in step.
"""

from __future__ import annotations

import numpy as np

from dragoman.audio.chunk import Samples

PIECE_SECONDS = 0.03
"""Two or three waves of a voice."""
SEARCH_SECONDS = 0.012
"""More than one wave of a deep voice: somewhere in it the waves are in step."""


def stretch(samples: Samples, rate: int, speed: float) -> Samples:
    """The same speech `speed` times as fast."""
    hop = round(PIECE_SECONDS * rate / 2)
    count = round(len(samples) / speed)
    if abs(speed - 1.0) < 0.005 or count < 4 * hop:
        return samples
    reach = round(SEARCH_SECONDS * rate)
    window = np.hanning(2 * hop + 1)[:-1].astype(np.float32)  # halves that overlap add up to one
    padded = np.pad(samples, (reach + hop, reach + round((4 + speed) * hop)))
    out = np.zeros(count + 4 * hop, np.float32)
    place = reach  # in `padded`; the first piece begins a hop before the sound
    for begin in range(0, count + hop, hop):
        wanted = reach + round(begin * speed)
        if begin:
            going_on = padded[place + hop : place + 3 * hop]
            near = padded[wanted - reach : wanted + reach + 2 * hop]
            place = wanted - reach + int(np.correlate(near, going_on, "valid").argmax())
        out[begin : begin + 2 * hop] += window * padded[place : place + 2 * hop]
    return out[hop : hop + count]
