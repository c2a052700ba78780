"""A recording that comes through a pipe and can only be decoded when all of it has come.

libsndfile has to seek in an ogg, mp3 or flac, where there is no ffmpeg. ffmpeg has to seek in an
m4a, mp4 or mov whose index is behind the sound, where most programs write it.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from struct import Struct
from typing import IO

from dragoman.audio.decoded import Decoded, Span
from dragoman.audio.ffmpeg import open_ffmpeg
from dragoman.audio.pcm import READ_BYTES, ByteStream, Frames, read_exactly
from dragoman.audio.sndfile import UnknownFormatError, open_sndfile
from dragoman.errors import DragomanError
from dragoman.files import sentences_for

log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds after which it is told that the end is awaited."""
_SIGNATURES = (b"OggS", b"fLaC", b"ID3", b"RIFF", b"RF64", b"FORM", b"caff", b".snd")


def is_spoolable(head: bytes) -> bool:
    """Whether what begins so may be a recording that libsndfile reads; an mp3 begins anyhow."""
    return head.startswith(_SIGNATURES) or (head[:1] == b"\xff" and head[1:2] >= b"\xe0")


_BOX = Struct(">I4s")  # how many bytes it has, with these; what it is
_BOXES = (b"ftyp", b"wide", b"free", b"skip", b"mdat", b"pnot")
"""How an m4a, mp4 or mov begins, but for one that begins with its index (`moov`)."""
_SMALL_BOX = 1 << 20

_NEEDS_FFMPEG = (
    "%s is compressed and still coming: without ffmpeg it is heard when it has ended. "
    "To hear it as it comes, install ffmpeg."
)
_NEEDS_INDEX = (
    "%s is still coming, and has its index at its end: it is heard when it has ended. To hear it "
    "as it comes, write it with the index first (ffmpeg: -movflags +faststart)."
)


def is_boxed(head: bytes) -> bool:
    """Whether what begins so is an m4a, mp4 or mov whose index is yet to come."""
    return head[4:8] in _BOXES


def index_is_last(stream: ByteStream) -> bool:
    """Whether the sound of an m4a, mp4 or mov comes before its index: it is read up to either."""
    while len(header := read_exactly(stream, _BOX.size)) == _BOX.size:
        size, kind = _BOX.unpack(header)
        if kind == b"moov":
            return False
        if kind == b"mdat" or not _BOX.size <= size <= _SMALL_BOX:
            return True
        read_exactly(stream, size - _BOX.size)
    return False


def open_spooled(stream: ByteStream, name: str, span: Span) -> Decoded:
    """Take all that comes, then begin to decode it by libsndfile from the wanted start."""
    return _spooled(stream, name, _NEEDS_FFMPEG, lambda path: open_sndfile(path, span, name))


def open_boxed(stream: ByteStream, name: str, span: Span, track: str | None) -> Decoded:
    """The same by ffmpeg."""
    return _spooled(stream, name, _NEEDS_INDEX, lambda path: open_ffmpeg(path, span, track, name))


def _spooled(
    stream: ByteStream, name: str, awaited: str, opened: Callable[[Path], Decoded]
) -> Decoded:
    """What is opened of a file with all that comes; `awaited` tells that this takes its time."""
    # Whoever reads the frames keeps the file; then it goes away.
    kept = tempfile.NamedTemporaryFile(suffix=".spool")  # noqa: SIM115
    try:
        with sentences_for(Path(kept.name)):
            _take_all(stream, kept, name, awaited)
        decoded = opened(Path(kept.name))
    except UnknownFormatError as error:
        kept.close()
        raise DragomanError(f"{name} is not a recording that can be read ({error}).") from None
    except BaseException:
        kept.close()
        raise
    return replace(decoded, frames=_frames(decoded, kept), live=True)


def _take_all(stream: ByteStream, kept: IO[bytes], name: str, awaited: str) -> None:
    began, told = time.monotonic(), False
    while data := stream.read1(READ_BYTES):
        kept.write(data)
        if not told and time.monotonic() - began > PATIENCE:
            told = True
            log.warning(awaited, name)
    kept.flush()


def _frames(decoded: Decoded, kept: IO[bytes]) -> Iterator[Frames]:
    with kept:
        yield from decoded.frames
