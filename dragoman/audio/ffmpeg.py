"""Decoding through ffmpeg, where it is installed: m4a, mp4, webm, mkv and all the rest.

ffmpeg decodes into a pipe, as a wav that never ends; nothing is written to disk.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from dragoman.audio.damage import listed_moments
from dragoman.audio.decoded import Decoded, Span
from dragoman.audio.pcm import (
    READ_BYTES,
    ByteStream,
    Frames,
    RawFormat,
    pcm_frames,
    read_wav_header,
)
from dragoman.audio.tracks import Track, contents_by, contents_of, listed, number_of
from dragoman.errors import DragomanError, Told

# What ffmpeg puts before a message (an address, the file's name), and lines that say nothing.
_PREFIX = re.compile(r"^(\[[^\]]*\] *)?((file|pipe):[^ ]*: )?")
_EMPTY = re.compile(r"trailing '\?'|Last message repeated")

NO_INDEX = "moov atom not found"
"""What is wrong with an m4a or an mp4 whose recorder was killed, or that was copied in part."""
_NEVER = str(1 << 30)
"""Seconds."""

log = logging.getLogger(__name__)


def open_ffmpeg(
    path: Path,
    span: Span,
    track: str | None = None,
    name: str = "",
    complain: bool = True,
    gaps: bool = False,
) -> Decoded:
    """Begin to decode a file, told of by its path or a name, from the wanted start: ffmpeg seeks,
    and stops at the wanted end.

    `complain`: what is damaged is told, as nobody else has. `gaps`: one of ten seconds or more is
    kept, too, which ffmpeg takes for a new recording.
    """
    name = name or str(path)
    _program(name)
    if track is None:
        _tell_tracks(path, name)
    number = 0 if track is None else number_of(track, contents_of(path).tracks, name)
    seek = ["-ss", f"{span.start:.6f}"] if span.start else []
    seek += ["-dts_delta_threshold", _NEVER] if gaps else []
    stop = [] if span.end is None else ["-t", f"{span.end - span.start + 0.1:.6f}"]
    # 'file:' keeps a name with a colon or a leading dash from being taken for something else.
    pipe = _Pipe.start([*seek, "-i", f"file:{path}"], number, stop, name)
    return _decoded(pipe, start_s=span.start, complain=complain)


@lru_cache(maxsize=64)  # a film may be a whole corpus of clips
def _tell_tracks(path: Path, name: str) -> None:
    """Where there are several, say which one is heard unasked."""
    _tell_several(contents_of(path).tracks, name)


def _tell_several(tracks: Sequence[Track], name: str) -> None:
    if len(tracks) > 1:
        log.warning(
            Told(
                f"{name} has {listed(tracks)}; the first is heard.",
                advice="('dragoman translate' and 'live' have --track).",
            )
        )


def open_ffmpeg_stream(stream: ByteStream, name: str, track: str | None = None) -> Decoded:
    """Begin to decode what comes through a pipe, whose tracks nobody can look at beforehand: they
    are told of when its sound begins."""
    if track is not None and (not track.isdecimal() or int(track) < 1):
        raise DragomanError(f"{name} is a pipe: choose its audio track by a number, 1 or more.")
    number = int(track or 1) - 1
    pipe = _Pipe.start(["-i", "pipe:0"], number, [], name, stdin=subprocess.PIPE)
    looked_at = _Beginning(stream)
    threading.Thread(target=pipe.pump, args=(looked_at,), daemon=True).start()
    decoded = _decoded(pipe, live=True)
    beginning = looked_at.taken()
    if track is None:
        _tell_several(contents_by(beginning).tracks, name)
    return decoded


class _Beginning:
    """A byte stream of which a copy is kept while nobody has asked for it."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._copy: bytearray | None = bytearray()

    def read1(self, size: int = -1, /) -> bytes:
        data = self._stream.read1(size)
        if (copy := self._copy) is not None:  # it may be taken away, on another thread
            copy += data
        return data

    def taken(self) -> bytes:
        """What has come so far; no more is kept."""
        copy, self._copy = self._copy, None
        return bytes(copy or b"")


def has_ffmpeg() -> bool:
    return shutil.which("ffmpeg") is not None


def ffmpeg_seconds(path: Path) -> float | None:
    """How long a file says it is; None where it does not know, as what a browser recorded."""
    probe = shutil.which("ffprobe")
    if probe is None:
        return None
    ask = ["-v", "error", "-select_streams", "a:0", "-show_entries", "stream=index:format=duration"]
    answer = subprocess.run(
        [probe, *ask, "-of", "json", f"file:{path}"], capture_output=True, stdin=subprocess.DEVNULL
    )
    facts = json.loads(answer.stdout or "{}")
    if "format" in facts and not facts.get("streams"):
        raise DragomanError(f"{path} holds no sound.")
    seconds = facts.get("format", {}).get("duration")
    return None if seconds is None else float(seconds)


def without_prefix(line: str) -> str:
    """What ffmpeg says, without the address or the name that it puts before it."""
    return _PREFIX.sub("", line).strip()


def _program(name: str) -> str:
    program = shutil.which("ffmpeg")
    if program is None:
        raise DragomanError(
            f"{name} is of a kind that needs ffmpeg: install ffmpeg, "
            "or convert it to wav, flac, ogg or mp3."
        )
    return program


@dataclass(frozen=True, slots=True, eq=False)
class _Pipe:
    """A running ffmpeg."""

    name: str
    track: int
    process: subprocess.Popen[bytes]
    sound: IO[bytes]
    complaints: IO[bytes]

    @classmethod
    def start(
        cls,
        source: list[str],
        track: int,
        stop: list[str],
        name: str,
        stdin: int = subprocess.DEVNULL,
    ) -> _Pipe:
        program = _program(name)
        # A file, not a pipe: however much ffmpeg has to say, it never waits for a reader.
        complaints = tempfile.TemporaryFile()  # noqa: SIM115
        # Sound that begins after the picture, or has a gap, keeps its place by silence.
        timed = ["-af", "aresample=async=1:first_pts=0"]
        wav = ["-bitexact", "-c:a", "pcm_f32le", "-f", "wav", "pipe:1"]
        wav = ["-map", f"0:a:{track}", *timed, *stop, *wav]
        process = subprocess.Popen(
            [program, "-nostdin", "-v", "error", *source, *wav],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=complaints,
        )
        assert process.stdout is not None
        return cls(name, track, process, process.stdout, complaints)

    def pump(self, stream: ByteStream) -> None:
        """Hand on what comes in, until there is no more or ffmpeg wants no more."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError), self.process.stdin as target:
            while data := stream.read1(READ_BYTES):
                target.write(data)
                target.flush()

    def complained(self) -> int:
        """How much ffmpeg has complained so far, in bytes."""
        return os.fstat(self.complaints.fileno()).st_size

    def told(self) -> list[str]:
        """What ffmpeg complained about."""
        self.process.wait()
        self.complaints.seek(0)
        lines = self.complaints.read().decode(errors="replace").strip().splitlines()
        return [without_prefix(line) for line in lines if not _EMPTY.search(line)]

    def reason(self) -> str:
        """The last of it, if there was any."""
        return next(reversed(self.told()), "").rstrip(".")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.sound.close()
        self.complaints.close()


def _decoded(
    pipe: _Pipe, live: bool = False, start_s: float = 0.0, complain: bool = True
) -> Decoded:
    try:
        header = read_wav_header(pipe.sound, pipe.name)  # type: ignore[arg-type]
    except DragomanError:
        told = pipe.told()
        pipe.close()
        if any("matches no streams" in line for line in told):
            there = f"has no audio track {pipe.track + 1}" if pipe.track else "holds no sound"
            raise DragomanError(f"{pipe.name} {there}.") from None
        if any(NO_INDEX in line for line in told):
            raise DragomanError(
                f"{pipe.name} is cut short: the index at its end is missing, without which nothing "
                "of it can be read. Copy it again, or end the recording properly."
            ) from None
        reason = told[0].rstrip(".") if told else "no reason given"
        raise DragomanError(
            f"{pipe.name} is not a recording that can be read (ffmpeg: {reason}).",
            advice="if these are raw samples, say which: --raw s16le:16000:1." if live else "",
        ) from None
    frames = _frames(pipe, header.format, start_s, complain)
    return Decoded(pipe.name, header.format.rate, frames, live)


def _frames(pipe: _Pipe, format: RawFormat, start_s: float, complain: bool) -> Iterator[Frames]:
    """What ffmpeg decodes, from a second of the recording on. Where it is damaged is told by what
    had been heard when ffmpeg complained: it is never far ahead."""
    heard, places, length = 0, list[float](), 0
    try:
        for frames in pcm_frames(pipe.sound, format):  # type: ignore[arg-type]
            heard += len(frames)
            if pipe.complained() > length:
                places.append(start_s + heard / format.rate)
                length = pipe.complained()
            yield frames
        reason = pipe.reason()
        if complain and reason:
            if pipe.complained() > length:
                places.append(start_s + heard / format.rate)
            log.warning(
                "%s is damaged at about %s; what can be read of it is (ffmpeg: %s).",
                *(pipe.name, listed_moments(places), reason),
            )
    finally:
        pipe.close()
