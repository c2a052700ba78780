"""A recording played as if its speaker were talking now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dragoman.audio.catch_up import caught_up
from dragoman.audio.chunk import Chunk
from dragoman.errors import DragomanError


def paced(
    chunks: Iterable[Chunk],
    speed: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Chunk]:
    """The chunks, each when its last sample would have been spoken, and stamped with that moment.

    With `speed` 2 the speaker talks twice as fast. To whoever takes the chunks too slowly, those
    that were spoken meanwhile come as one, as a microphone would have it.
    """
    if not 0 < speed < float("inf"):
        raise DragomanError(f"A recording cannot be played at {speed} times its speed.")
    step = 0.0  # seconds that the newest chunk took to speak
    missed = 0.0  # seconds for which the speaker talked on while the listener was busy

    def in_time() -> Iterator[Chunk]:
        nonlocal step, missed
        began, spoken = clock(), 0.0
        for chunk in chunks:
            step = chunk.seconds / speed
            spoken += step
            while (wait := began + spoken - clock()) > 0:  # the clock may stand still with us
                sleep(wait)
            missed = max(0.0, missed - step)
            given = clock()
            yield replace(chunk, arrival=spoken)
            missed += clock() - given

    # Being late by the clock would not do: a pipe may be late itself, and have nothing yet.
    return caught_up(in_time(), lambda: missed >= step)
