"""What stands before the samples of a wav: read from a stream in which nobody can seek."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from dragoman.audio.pcm import READ_BYTES, ByteStream, RawFormat, read_exactly
from dragoman.audio.resample import check_rate
from dragoman.errors import DragomanError

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
