"""Sound as plain numbers in a stream of bytes: raw PCM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE
from dragoman.audio.resample import check_rate
from dragoman.errors import DragomanError

Frames = NDArray[np.float32]
"""Decoded sound as it was recorded: shape (frames, channels)."""

READ_BYTES = 1 << 16


class ByteStream(Protocol):
    """What is needed of a pipe: give what is there, up to a size; nothing at the end."""

    def read1(self, size: int = -1, /) -> bytes: ...


def _integers(dtype: str, scale: float) -> Callable[[bytes], Frames]:
    return lambda data: np.frombuffer(data, dtype).astype(np.float32) / np.float32(scale)


def _bytes_8(data: bytes) -> Frames:
    return (np.frombuffer(data, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(128)


def _integers_24(data: bytes) -> Frames:
    """Three bytes each: put them into the upper part of 32 bits, which keeps the sign."""
    wide = np.zeros((len(data) // 3, 4), np.uint8)
    wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return wide.view("<i4")[:, 0].astype(np.float32) / np.float32(2**31)


def _floats(data: bytes) -> Frames:
    return np.frombuffer(data, "<f4").astype(np.float32)


def _doubles(data: bytes) -> Frames:
    with np.errstate(over="ignore", invalid="ignore"):  # infinity is noticed later, with its place
        return np.frombuffer(data, "<f8").astype(np.float32)


# name: (bytes per sample, how to read them)
ENCODINGS: dict[str, tuple[int, Callable[[bytes], Frames]]] = {
    "u8": (1, _bytes_8),
    "s16le": (2, _integers("<i2", 2**15)),
    "s24le": (3, _integers_24),
    "s32le": (4, _integers("<i4", 2**31)),
    "f32le": (4, _floats),
    "f64le": (8, _doubles),
}


@dataclass(frozen=True, slots=True)
class RawFormat:
    """How raw PCM is to be understood, as nothing in it says so."""

    encoding: str = "s16le"
    rate: int = RATE
    channels: int = 1

    def __post_init__(self) -> None:
        if self.encoding not in ENCODINGS:
            known = ", ".join(ENCODINGS)
            raise DragomanError(f"Raw audio cannot be '{self.encoding}'; it can be {known}.")
        check_rate(self.rate, "Raw audio")
        if not 1 <= self.channels <= 64:
            raise DragomanError(f"Raw audio cannot have {self.channels} channels.")

    @classmethod
    def parse(cls, text: str) -> RawFormat:
        """From 'ENCODING[:RATE[:CHANNELS]]', as in 's16le', 's16le:48000' or 'f32le:44100:2'."""
        encoding, *numbers = text.split(":")
        if len(numbers) > 2 or not all(number.isdecimal() for number in numbers):
            raise DragomanError(
                f"'{text}' is not a raw audio format; write it like s16le:48000:2 "
                "(encoding, samples a second, channels)."
            )
        return cls(encoding, *(int(number) for number in numbers))

    @property
    def frame_bytes(self) -> int:
        return ENCODINGS[self.encoding][0] * self.channels


def pcm_frames(stream: ByteStream, format: RawFormat, limit: int | None = None) -> Iterator[Frames]:
    """The frames of a byte stream, as soon as they arrive; half a frame at the end is dropped."""
    _, decode = ENCODINGS[format.encoding]
    left, remains = limit, b""
    while left is None or left > 0:
        data = stream.read1(READ_BYTES if left is None else min(READ_BYTES, left))
        if not data:
            return
        left = None if left is None else left - len(data)
        data = remains + data
        whole = len(data) - len(data) % format.frame_bytes
        remains = data[whole:]
        if whole:
            yield decode(data[:whole]).reshape(-1, format.channels)


class Reread:
    """A byte stream whose first bytes were already looked at, and come again."""

    def __init__(self, head: bytes, rest: ByteStream) -> None:
        self._head, self._rest = head, rest

    def read1(self, size: int = -1, /) -> bytes:
        if not self._head:
            return self._rest.read1(size)
        cut = len(self._head) if size < 0 else size
        data, self._head = self._head[:cut], self._head[cut:]
        return data


def read_exactly(stream: ByteStream, size: int) -> bytes:
    """`size` bytes, fewer only at the end of the stream."""
    parts: list[bytes] = []
    while size > 0 and (data := stream.read1(size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)
