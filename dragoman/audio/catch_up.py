"""A listener who is slower than the speaker gets fewer, longer chunks, and so catches up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from dragoman.audio.chunk import Chunk, joined_originals

LONGEST = 5.0
"""Seconds that chunks are joined up to. Longer ones would fill a model's window at one stroke, and
hide the pauses between sentences."""


def caught_up(chunks: Iterable[Chunk], another_waits: Callable[[], bool]) -> Iterator[Chunk]:
    """The chunks of a live source; those that wait while the listener is busy come as one.

    A step of a model costs nearly the same however much it hears, so whoever is behind hears all
    that waits at once. `another_waits` tells whether the next chunk is already there: nothing that
    was heard is kept waiting for sound that is still to come.
    """
    held: list[Chunk] = []
    for chunk in chunks:
        held.append(chunk)
        longer = sum(one.seconds for one in held) + chunk.seconds  # steps are equally long
        if chunk.last or longer > LONGEST or not another_waits():
            yield joined(held)
            held = []


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk in place of several; it was there when the last of them was."""
    if len(chunks) == 1:
        return chunks[0]
    samples = np.concatenate([chunk.samples for chunk in chunks])
    original = joined_originals([c.original for c in chunks if c.original is not None])
    newest, closes = chunks[-1], any(chunk.closes for chunk in chunks)
    return Chunk(samples, newest.last, newest.arrival, closes, original)
