"""Sound as plain numbers in a stream of bytes in which nobody can seek: raw PCM, and wav."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE, Samples
from dragoman.audio.resample import check_rate
from dragoman.errors import DragomanError

Frames = NDArray[np.float32]
"""Decoded sound as it was recorded: shape (frames, channels)."""

READ_BYTES = 1 << 16


class ByteStream(Protocol):
    """What is needed of a pipe: give what is there, up to a size; nothing at the end."""

    def read1(self, size: int = -1, /) -> bytes: ...


def from_pcm16(data: bytes) -> Samples:
    """Whole samples of 16 bits, little-endian, as floats in [-1, 1)."""
    return np.frombuffer(data, "<i2").astype(np.float32) / np.float32(32768)


def to_pcm16(samples: Samples) -> bytes:
    """The other way; what is louder than 16 bits can tell is clipped."""
    scaled = np.clip(np.round(np.asarray(samples) * 32768), -32768, 32767)
    return scaled.astype("<i2").tobytes()


def _integers_32(data: bytes) -> Frames:
    return np.frombuffer(data, "<i4").astype(np.float32) / np.float32(2**31)


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
    "s16le": (2, from_pcm16),
    "s24le": (3, _integers_24),
    "s32le": (4, _integers_32),
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


class Copied:
    """A byte stream of which a copy is kept, to be looked at again."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.taken = b""

    def read1(self, size: int = -1, /) -> bytes:
        data = self._stream.read1(size)
        self.taken += data
        return data


def read_exactly(stream: ByteStream, size: int) -> bytes:
    """`size` bytes, fewer only at the end of the stream."""
    parts: list[bytes] = []
    while size > 0 and (data := stream.read1(size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_ENCODING_OF = {
    (_PCM, 8): "u8",
    (_PCM, 16): "s16le",
    (_PCM, 24): "s24le",
    (_PCM, 32): "s32le",
    (_FLOAT, 32): "f32le",
    (_FLOAT, 64): "f64le",
}


class CodedWavError(DragomanError):
    """A wav whose samples are not plain numbers: ADPCM, mu-law, mp3 in a wav's clothes."""


@dataclass(frozen=True, slots=True)
class WavHeader:
    """How the samples of a wav are written, where they begin and how many bytes they are."""

    format: RawFormat
    data_start: int
    data_bytes: int | None
    """None where the writer did not know: a recorder that wrote to a pipe, or was killed."""


def is_wav(head: bytes) -> bool:
    """Whether a file that begins with these 12 bytes is a wav."""
    return head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE"


def read_wav_header(stream: ByteStream, name: str) -> WavHeader:
    """Read up to the first sample of a wav; the stream then stands at that sample."""
    if not is_wav(read_exactly(stream, 12)):
        raise DragomanError(f"{name} is not a wav.")
    position, format = 12, None
    while len(chunk := read_exactly(stream, 8)) == 8:
        position += 8
        size = int.from_bytes(chunk[4:], "little")
        if chunk[:4] == b"data":
            if format is None:
                raise DragomanError(f"{name} is a wav without a format before its samples.")
            return WavHeader(format, position, _known(size))
        padded = size + size % 2
        if chunk[:4] == b"fmt ":
            format = _read_format(read_exactly(stream, min(padded, READ_BYTES)), name)
        else:
            _skip(stream, padded)
        position += padded
    raise DragomanError(f"{name} is a wav that ends before its first sample.")


def _known(size: int) -> int | None:
    """The size of the samples, unless it is what writers put for 'no idea yet'.

    Those are 0, the largest numbers of 32 bits, and numbers around 2 GiB.
    """
    guess = size == 0 or size >= 0xFFFF_F000 or 0x7FFF_F000 <= size <= 0x8000_1000
    return None if guess else size


def _skip(stream: ByteStream, size: int) -> None:
    while size > 0 and (data := stream.read1(min(size, READ_BYTES))):
        size -= len(data)


def _read_format(body: bytes, name: str) -> RawFormat:
    if len(body) < 16:
        raise DragomanError(f"{name} is a wav whose format is cut short.")
    tag, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
    if tag == _EXTENSIBLE and len(body) >= 26:
        (tag,) = struct.unpack_from("<H", body, 24)
    encoding = _ENCODING_OF.get((tag, bits))
    if encoding is None:
        raise CodedWavError(
            f"{name} is a wav with {bits}-bit samples of kind {tag}, which is not plain PCM; "
            "convert it first."
        )
    if not 1 <= channels <= 64:
        raise DragomanError(f"{name} is a wav with {channels} channels.")
    return RawFormat(encoding, check_rate(rate, name), channels)
