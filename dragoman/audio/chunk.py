"""What every audio source yields: a piece of sound, and whether it is the last."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError

RATE = 16000
"""Samples per second of all sound inside Dragoman: 16 kHz, mono, float32 in [-1, 1]."""

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Original:
    """Sound as it was recorded, for whoever wants it in its own quality."""

    frames: Samples
    """Of the shape (frames, channels)."""
    rate: int


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """The next piece of a recording or of a live speaker.

    A source yields any number of chunks, exactly one of them, the final one, with `last`.
    The final chunk may be empty: a microphone learns of its end only after the fact.
    """

    samples: Samples
    last: bool
    arrival: float | None = None
    """Seconds since the start of listening, where a real clock stamped the chunk."""
    closes: bool = False
    """What was heard so far shall be said now, as after a pause."""
    original: Original | None = None
    """The same sound as it was recorded, where somebody has asked the source for it."""

    @property
    def seconds(self) -> float:
        return len(self.samples) / RATE


class Chunker:
    """Cuts blocks of any size into chunks of one step."""

    def __init__(self, step_ms: float) -> None:
        if not (math.isfinite(step_ms) and step_ms > 0):
            raise DragomanError(f"Audio cannot be cut into steps of {step_ms} ms.")
        self._step = max(1, round(step_ms * RATE / 1000))
        self._held: list[Samples] = []
        self._count = 0
        self._cut = 0  # samples in the chunks so far
        self._originals = Originals()

    def feed(
        self,
        block: Samples,
        arrival: float | None = None,
        hold: bool = False,
        original: Original | None = None,
    ) -> Iterator[Chunk]:
        """The chunks that are complete now; with `hold`, only when something follows them.

        To hold costs a wait for the next block, so it is for files. It makes sure that the last
        chunk, which `finish` returns, is not empty. An `original` may be ahead of its block, as a
        resampler lags; each chunk gets its own part of it.
        """
        self._originals.add(original)
        self._held.append(block)
        self._count += len(block)
        if self._count < self._step + hold:
            return
        samples = np.concatenate(self._held)
        whole = (self._count - hold) // self._step * self._step
        self._held, self._count = [samples[whole:]], self._count - whole
        for at in range(0, whole, self._step):
            self._cut += self._step
            original = self._originals.until(self._cut / RATE)
            yield Chunk(samples[at : at + self._step], False, arrival, original=original)

    def finish(self, arrival: float | None = None) -> Chunk:
        """The last chunk: what is left, less than a step or just one."""
        samples = np.concatenate([*self._held, np.zeros(0, np.float32)])
        self._held, self._count = [], 0
        return Chunk(samples, True, arrival, original=self._originals.until(math.inf))


class Originals:
    """Recorded sound that waits for the chunks that it belongs to."""

    def __init__(self) -> None:
        self._waiting: list[Original] = []
        self._taken = 0

    def add(self, original: Original | None) -> None:
        if original is not None:
            self._waiting.append(original)

    def until(self, seconds: float) -> Original | None:
        """What was recorded up to a moment, and was not taken before."""
        if not (joined := joined_originals(self._waiting)):
            return None
        end = len(joined.frames)
        if seconds < math.inf:
            end = min(end, round(seconds * joined.rate) - self._taken)
        self._taken += end
        self._waiting = [Original(joined.frames[end:], joined.rate)]
        return Original(joined.frames[:end], joined.rate)


def joined_originals(originals: Sequence[Original]) -> Original | None:
    """One in place of several, which have one rate; channels as the first has them."""
    if not originals:
        return None
    channels, rate = originals[0].frames.shape[1], originals[0].rate
    return Original(np.concatenate([as_many(one.frames, channels) for one in originals]), rate)


def as_many(frames: Samples, channels: int) -> Samples:
    """Frames with so many channels; where they have others, each is the mean of these."""
    if frames.shape[1] == channels:
        return frames
    return np.repeat(frames.mean(axis=1, keepdims=True, dtype=np.float32), channels, axis=1)
