"""Where another process could go on with a talk, if its model does not say: behind words that were
said, as long ago as is needed to find the place.

A model tells from where on it would have to be heard again. One that knows of nothing but pauses
would have minutes heard again of who makes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dragoman.serve.protocol import Said
from dragoman.text.sentences import ends_sentence

MOST_MS, LEAST_MS = 30_000.0, 15_000.0
"""Of sound that is heard again: above the first, less will do; in the second, so many words were
said that others are known by them."""
LEAD_MS = 1000.0
"""Before the first of these words: when it was spoken is known roughly."""


def restart(words: Sequence[Said], now_ms: float) -> Said | None:
    """The first of the words that would be said again: the last that begins a sentence, or else the
    last of all that are old enough; None: none is, or nobody knows when it was spoken."""
    newest: Said | None = None
    for word, before in pairwise(reversed(words)):
        if word.source_ms <= now_ms - MOST_MS or word.lag_ms is None:
            break
        if word.source_ms <= now_ms - LEAST_MS:
            newest = newest or word
            if ends_sentence(before.text, word.text):
                return word
    return newest
