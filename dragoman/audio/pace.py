"""A recording played as if its speaker were talking now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dragoman.audio.chunk import Chunk
from dragoman.errors import DragomanError


def paced(
    chunks: Iterable[Chunk],
    speed: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Chunk]:
    """The chunks, each when its last sample would have been spoken, and stamped with that moment.

    With `speed` 2 the speaker talks twice as fast. Whoever takes the chunks too slowly gets them
    late but stamped as the speaker spoke them, as a microphone would have it.
    """
    if not 0 < speed < float("inf"):
        raise DragomanError(f"A recording cannot be played at {speed} times its speed.")
    began, spoken = clock(), 0.0
    for chunk in chunks:
        spoken += chunk.seconds / speed
        wait = began + spoken - clock()
        if wait > 0:
            sleep(wait)
        yield replace(chunk, arrival=spoken)
