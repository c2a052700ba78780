"""From any sample rate to 16 kHz, block by block: the past is never computed again."""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Iterator
from numbers import Real
from weakref import WeakSet

import numpy as np

from dragoman.audio.chunk import RATE, Samples
from dragoman.errors import DragomanError

LOWEST_RATE, HIGHEST_RATE = 4000, 768_000


def check_rate(rate: int, name: str) -> int:
    """The rate itself, or a sentence: a header's nonsense must not become gigabytes of sound."""
    if not (is_number(rate) and LOWEST_RATE <= rate <= HIGHEST_RATE):
        shown = rate if is_number(rate) else repr(rate)
        raise DragomanError(
            f"{name} says it has {shown} samples a second; "
            f"speech needs between {LOWEST_RATE} and {HIGHEST_RATE}."
        )
    return rate


def is_number(value: object) -> bool:
    """Whether a value is a number, also one of numpy's; a program may give us anything."""
    return isinstance(value, Real)


class Resampler:
    """A stream of mono sound changed from one rate to another.

    What comes out, joined, equals resampling the whole at once. It lags by some tens of
    milliseconds (the filter looks ahead) until `finish` returns the rest.
    """

    def __init__(self, rate: int, to: int = RATE) -> None:
        self._stream = None
        if rate != to:
            import soxr

            self._stream = soxr.ResampleStream(rate, to, 1, dtype="float32", quality="HQ")
            _in_use.add(self)

    def feed(self, block: Samples) -> Samples:
        if self._stream is None:
            return block
        out: Samples = self._stream.resample_chunk(np.ascontiguousarray(block))
        return out

    def finish(self) -> Samples:
        nothing = np.zeros(0, np.float32)
        if self._stream is None:
            return nothing
        out: Samples = self._stream.resample_chunk(nothing, last=True)
        return out


_in_use: WeakSet[Resampler] = WeakSet()


@atexit.register
def _let_go() -> None:
    """A thread that waits for a pipe when Python ends keeps what it has for ever, and soxr's
    binding would tell whoever pressed Ctrl-C of leaks."""
    for resampler in list(_in_use):
        resampler._stream = None


def resampled(blocks: Iterable[Samples], rate: int, to: int = RATE) -> Iterator[Samples]:
    """The blocks of a recording at another rate."""
    resampler = Resampler(rate, to)
    for block in blocks:
        yield resampler.feed(block)
    yield resampler.finish()


def resample(samples: Samples, rate: int, to: int = RATE) -> Samples:
    """A whole clip at another rate."""
    return np.concatenate(list(resampled([samples], rate, to)))
