"""A compressed recording that comes through a pipe, where there is no ffmpeg: kept until its end.

libsndfile has to seek in an ogg, mp3 or flac, so it is decoded once all of it has come.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from dragoman.audio.decoded import Decoded, Span
from dragoman.audio.pcm import READ_BYTES, ByteStream, Frames
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


def open_spooled(stream: ByteStream, name: str, span: Span) -> Decoded:
    """Take all that comes, then begin to decode it from the wanted start."""
    # Whoever reads the frames keeps the file; then it goes away.
    kept = tempfile.NamedTemporaryFile(suffix=".spool")  # noqa: SIM115
    try:
        with sentences_for(Path(kept.name)):
            _take_all(stream, kept, name)
        decoded = open_sndfile(Path(kept.name), span, name)
    except UnknownFormatError as error:
        kept.close()
        raise DragomanError(f"{name} is not a recording that can be read ({error}).") from None
    except BaseException:
        kept.close()
        raise
    return replace(decoded, frames=_frames(decoded, kept), live=True)


def _take_all(stream: ByteStream, kept: IO[bytes], name: str) -> None:
    began, told = time.monotonic(), False
    while data := stream.read1(READ_BYTES):
        kept.write(data)
        if not told and time.monotonic() - began > PATIENCE:
            told = True
            log.warning(
                "%s is compressed and still coming: without ffmpeg it is heard when it has ended. "
                "To hear it as it comes, install ffmpeg.",
                name,
            )
    kept.flush()


def _frames(decoded: Decoded, kept: IO[bytes]) -> Iterator[Frames]:
    with kept:
        yield from decoded.frames
