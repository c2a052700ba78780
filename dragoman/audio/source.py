"""Sound from files and pipes, as 16 kHz mono chunks.

    for chunk in open_audio("talk.m4a", step_ms=1000): ...

Whatever the length of a recording, only a few blocks of it are in memory.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import cast
from urllib.parse import unquote

import numpy as np

from dragoman.audio.chunk import Chunk, Chunker, Original, Samples
from dragoman.audio.decoded import Decoded, Span, skip, wanted
from dragoman.audio.ffmpeg import ffmpeg_seconds, has_ffmpeg, open_ffmpeg, open_ffmpeg_stream
from dragoman.audio.mono import Mono
from dragoman.audio.pcm import (
    ENCODINGS,
    ByteStream,
    CodedWavError,
    Copied,
    RawFormat,
    Reread,
    is_wav,
    pcm_frames,
    read_exactly,
    read_wav_header,
)
from dragoman.audio.resample import Resampler
from dragoman.audio.sndfile import UnknownFormatError, open_pcm, open_sndfile, sndfile_seconds
from dragoman.audio.spooled import (
    index_is_last,
    is_boxed,
    is_spoolable,
    open_boxed,
    open_spooled,
)
from dragoman.audio.tracks import check_only_track
from dragoman.errors import DragomanError

STDIN = "-"


def open_audio(
    path: str | Path,
    *,
    start: float = 0.0,
    end: float | None = None,
    step_ms: float = 1000.0,
    raw: RawFormat | None = None,
    track: str | None = None,
    channel: int | None = None,
    original: bool = False,
) -> Iterator[Chunk]:
    """The chunks of a file, or of standard input ('-'); exactly one of them is the last.

    `start` and `end` are seconds; what lies before the start is sought over, not decoded.
    `raw` says how to read bytes that are plain samples. `track` is the audio track that is heard,
    by its number, from 1 on, or its language; else the first. `channel`, from 1 on, is heard alone;
    else the mean of all. With `original` each chunk holds its sound as it was recorded, too.
    What is wrong with a file is said here, not at the first chunk; of a pipe nothing is awaited
    before it is needed.
    """
    if not str(path):  # a Path makes the folder '.' of it
        raise DragomanError("A name is missing: which recording is to be heard?")
    span = Span(start, end)
    cut = partial(_chunks, span=span, chunker=Chunker(step_ms), channel=channel, original=original)
    if is_pipe(path):
        standard = _standard_input() if str(path) == STDIN else None
        return _chunks_of_pipe(
            path, standard, cut, lambda s, n: _open_stream(s, n, span, raw, track)
        )
    chunks = cut(_open_file(Path(path), span, raw, track))
    return itertools.chain([next(chunks)], chunks)


def read_audio(
    path: str | Path,
    start: float = 0.0,
    end: float | None = None,
    raw: RawFormat | None = None,
    track: str | None = None,
    channel: int | None = None,
) -> Samples:
    """A whole clip, or the wanted part of it."""
    chunks = open_audio(path, start=start, end=end, raw=raw, track=track, channel=channel)
    return np.concatenate([chunk.samples for chunk in chunks])


def duration(path: str | Path) -> float:
    """The length of a file in seconds; it is decoded only where its header does not know."""
    path = _existing(Path(path))
    try:
        seconds = sndfile_seconds(path)
    except UnknownFormatError:
        _check_media(path)
        known = ffmpeg_seconds(path)
        seconds = sum(c.seconds for c in open_audio(path)) if known is None else known
    if seconds <= 0:
        raise DragomanError(f"{path} holds no sound.")
    return seconds


def is_pipe(path: str | Path) -> bool:
    """Whether this is standard input or a named pipe: it can be read once, and not sought in."""
    try:
        return str(path) == STDIN or stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _chunks(
    decoded: Decoded, span: Span, chunker: Chunker, channel: int | None, original: bool
) -> Iterator[Chunk]:
    mono, resampler = Mono(decoded.rate, channel, decoded.name), Resampler(decoded.rate)
    hold = not decoded.live  # the newest samples of a file: its last chunk is never empty
    for frames in wanted(decoded, span):
        whole = Original(frames, decoded.rate) if original else None
        yield from chunker.feed(resampler.feed(mono.of(frames)), hold=hold, original=whole)
    yield from chunker.feed(resampler.finish(), hold=hold)
    yield chunker.finish()


def _chunks_of_pipe(
    path: str | Path,
    standard: ByteStream | None,
    cut: Callable[[Decoded], Iterator[Chunk]],
    opened: Callable[[ByteStream, str], Decoded],
) -> Iterator[Chunk]:
    if standard is not None:
        yield from cut(opened(standard, "Standard input"))
    else:
        with Path(path).open("rb") as stream:
            yield from cut(opened(stream, str(path)))


class _Unbuffered:
    """A pipe without the lock of a buffer, which Python would wait for at its end."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw

    def read1(self, size: int = -1, /) -> bytes:
        return self._raw.read(size) or b""


def _standard_input() -> ByteStream:
    if sys.stdin is None:  # closed by whoever called us, as in `<&-`
        raise DragomanError("Standard input is closed; name a file, or pipe sound into it.")
    raw = getattr(sys.stdin.buffer, "raw", None)
    if raw is not None and raw.isatty():  # where it would wait for ever, and say nothing
        raise DragomanError("Standard input is a keyboard; name a file, or pipe sound into it.")
    return cast(ByteStream, sys.stdin.buffer) if raw is None else _Unbuffered(raw)


def _open_stream(
    stream: ByteStream, name: str, span: Span, raw: RawFormat | None, track: str | None
) -> Decoded:
    limit = None
    if raw is None:
        head = read_exactly(stream, 12)
        if not head:
            raise DragomanError(f"{name} holds no sound.")
        if not is_wav(head):
            return _open_coded(Reread(head, stream), name, span, head, track)
        copied = Copied(Reread(head, stream))
        try:
            header = read_wav_header(copied, name)
        except CodedWavError:
            return _open_coded(Reread(copied.taken, stream), name, span, head, track)
        raw, limit = header.format, header.data_bytes
    check_only_track(track, name)
    frames = pcm_frames(stream, raw, limit)
    return Decoded(name, raw.rate, skip(frames, span.first(raw.rate)), live=True)


def _open_coded(
    stream: ByteStream, name: str, span: Span, head: bytes, track: str | None
) -> Decoded:
    """What has to be decoded: by ffmpeg, as it comes, where it can be, or when all has come."""
    if has_ffmpeg():
        if is_boxed(head):
            copied = Copied(stream)
            last = index_is_last(copied)
            stream = Reread(copied.taken, stream)
            if last:
                return open_boxed(stream, name, span, track)
        decoded = open_ffmpeg_stream(stream, name, track)
        return Decoded(name, decoded.rate, skip(decoded.frames, span.first(decoded.rate)), True)
    if is_spoolable(head):
        check_only_track(track, name)
        return open_spooled(stream, name, span)
    if _is_media(head):
        raise DragomanError(f"{name} is of a kind that needs ffmpeg: install it and try again.")
    raise _no_recording(f"{name} does not begin as a recording does.", are="these are")


def _open_file(path: Path, span: Span, raw: RawFormat | None, track: str | None) -> Decoded:
    _existing(path)
    try:
        decoded = open_sndfile(path, span) if raw is None else open_pcm(path, raw, span)
    except UnknownFormatError:
        _check_media(path)
        return open_ffmpeg(path, span, track)
    check_only_track(track, str(path))
    return decoded


def _existing(path: Path) -> Path:
    """The path, if it is a file that may be read and has something in it."""
    if os.path.isdir(path):
        raise DragomanError(f"{path} is a folder; name a recording in it.")
    try:
        with path.open("rb") as file:
            if not file.read(1):
                raise DragomanError(f"{path} is empty.")
    except FileNotFoundError:
        raise _missing(path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DragomanError(f"{str(path)!r} cannot be read: {reason}.") from None
    return path


def _missing(path: Path) -> DragomanError:
    if str(path).startswith("file:/"):  # as file managers copy it, with %C3%BC for ü
        place = unquote(str(path).removeprefix("file:"))
        return DragomanError(f"Name the file itself, without 'file://': {place}")
    if _ADDRESS.match(str(path)):
        address = str(path).replace(":/", "://", 1)
        return DragomanError(
            f"{address} is an address, not a file.",
            advice="fetch it first, or pipe it: curl -sL ADDRESS | dragoman translate -",
        )
    return DragomanError(f"There is no file {path}.")


_ADDRESS = re.compile(r"[a-z]{3,}:/")  # as a Path writes it, with one stroke

# How recordings begin that ffmpeg can read and libsndfile may not: offset, bytes.
_SIGNATURES = (
    *((0, b"RIFF"), (0, b"RF64"), (4, b"ftyp"), (4, b"moov"), (4, b"mdat"), (4, b"wide")),
    *((0, b"\x1aE\xdf\xa3"), (0, b"OggS"), (0, b"fLaC"), (0, b"ID3"), (0, b"FLV"), (0, b"FORM")),
    *((0, b"\xff\xf1"), (0, b"\xff\xf9"), (0, b"0&\xb2u"), (0, b"#!AMR"), (0, b"caff")),
    *((0, b"\x0bw"), (0, b"MAC "), (0, b"wvpk"), (0, b"\x47\x40"), (0, b"\x00\x00\x01\xba")),
)

_PLAIN = {"", ".raw", ".pcm", ".bin", ".dat", ".sw", ".s16", ".l16"} | {
    f".{one}" for one in ENCODINGS
}
"""How files of plain samples are called."""


def _no_recording(what: str, *, are: str = "") -> DragomanError:
    """Something is none; what `are`, perhaps, plain samples can be read as such."""
    return DragomanError(
        what,
        advice=f"if {are} plain samples, say how to read them: --raw s16le:16000:1 (encoding, "
        "samples a second, channels)."
        if are
        else "",
    )


def _check_media(path: Path) -> None:
    """Refuse what libsndfile refused, unless it begins as a recording does.

    ffmpeg tries hard to find sound in anything, and noise is what it finds.
    """
    with path.open("rb") as file:
        head = file.read(16)
    if not _is_media(head):
        what = f"{path} is not a recording, whatever its name says."
        raise _no_recording(what, are="it is" if path.suffix.lower() in _PLAIN else "")


def _is_media(head: bytes) -> bool:
    return any(head[at:].startswith(mark) for at, mark in _SIGNATURES)
