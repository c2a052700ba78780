"""Decoding through libsndfile (wav, flac, ogg, opus, mp3, …), with its corners rounded off.

- The length of an mp3 is a guess where its header has none, or speaks of the first of several
  joined recordings. libsndfile stops there; we open what remains and go on.
- Of an ogg with several recordings in it libsndfile knows the first alone.
- What is damaged in the middle is passed over without a word; a flac ends there.
- An mp3 that is sought in gives noise until enough of it has been decoded.
- A wav whose recorder was killed says it has no samples, or more than there are.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from dragoman.audio.cut import begins_as_mp3, is_cut
from dragoman.audio.damage import (
    EARLIER,
    EARLIER_BUT_FOR_FFMPEG,
    LEFT_OUT,
    LOST,
    LOST_BUT_FOR_FFMPEG,
    SILENT,
    Hole,
    frames_follow,
    mp3_holes,
    ogg_holes,
    tell_damage,
)
from dragoman.audio.decoded import Decoded, Span, skip
from dragoman.audio.ffmpeg import has_ffmpeg, open_ffmpeg
from dragoman.audio.hushed import hushed
from dragoman.audio.ogg import links
from dragoman.audio.pcm import (
    CodedWavError,
    Frames,
    RawFormat,
    WavHeader,
    is_wav,
    pcm_frames,
    read_wav_header,
)
from dragoman.audio.resample import check_rate

if TYPE_CHECKING:
    from soundfile import SoundFile

log = logging.getLogger(__name__)

BLOCK = 4096
TAGS = 2048
"""Fewer bytes than this after an mp3 are its tags, if they hold no frames."""

CUT_SHORT = "%s seems to be cut short: its end is missing."

UNFILLED = 0.25
"""Seconds of a damaged flac that ffmpeg may leave out: it fills no gap of less than a tenth."""
UNKNOWN = 1 << 48
"""More frames than this is how libsndfile says that a file does not know its length."""


class UnknownFormatError(Exception):
    """libsndfile does not know this kind of file."""


def open_sndfile(path: Path, span: Span, name: str = "") -> Decoded:
    """Begin to decode a file, told of by its path or a name, from the wanted start."""
    name = name or str(path)
    header = _wav_header(path)
    if header is not None:
        size = path.stat().st_size - header.data_start
        if header.data_bytes is None:  # whatever follows the header is sound
            return open_pcm(path, header.format, span, header.data_start)
        if size < header.data_bytes:
            _warn_of_missing(name, header, size)
    with path.open("rb") as file, next(_parts(file)) as sound:
        rate = check_rate(sound.samplerate, name)
    holes = mp3_holes(path)
    if is_cut(path, damaged=bool(holes)):
        log.warning(CUT_SHORT, name)
    tell_damage(name, span, holes, LEFT_OUT)
    if (holes := ogg_holes(path, rate)) and _fills(path, span, holes, name):
        with path.open("rb") as file:
            single = len(links(file)) == 1
        return open_ffmpeg(path, span, name=name, complain=False, gaps=single)
    return Decoded(name, rate, _frames(path, span.first(rate), rate, name))


def _fills(path: Path, span: Span, holes: Sequence[Hole], name: str) -> bool:
    """Tell what becomes of the holes of an ogg; whether ffmpeg is to fill them with silence."""
    size = path.stat().st_size
    inside = [hole for hole in holes if hole.end < size]
    crossed = not any(hole.is_far_across and hole.is_in(span) for hole in inside)
    fills = crossed and has_ffmpeg()
    tell_damage(
        *(name, span, inside),
        SILENT if fills else EARLIER_BUT_FOR_FFMPEG if crossed else EARLIER,
    )
    tell_damage(name, span, [hole for hole in holes if hole not in inside], LOST)
    return fills


def sndfile_seconds(path: Path) -> float:
    """How long a file is, without decoding it."""
    header = _wav_header(path)
    if header is not None and header.data_bytes is None:
        size = path.stat().st_size - header.data_start
        return size // header.format.frame_bytes / header.format.rate
    total, whole = 0.0, not is_cut(path) and not mp3_holes(path)
    with path.open("rb") as file:
        for sound in _parts(file):
            if sound.frames > UNKNOWN or not whole:  # what its header says is not what it holds
                frames = _frames(path, 0, sound.samplerate, str(path))
                return float(sum(map(len, frames)) / sound.samplerate)
            total += sound.frames / check_rate(sound.samplerate, str(path))
            _run_to_end(sound)
    return total


def _wav_header(path: Path) -> WavHeader | None:
    """The header, where this is a wav of plain numbers; RF64 keeps its length elsewhere."""
    with path.open("rb") as file:
        if not is_wav(head := file.read(12)) or head.startswith(b"RF64"):
            return None
        file.seek(0)
        try:
            return read_wav_header(file, str(path))
        except CodedWavError:
            return None


def open_pcm(path: Path, format: RawFormat, span: Span, offset: int = 0) -> Decoded:
    """Begin to read a file of plain samples that begin at an offset."""

    def frames() -> Iterator[Frames]:
        with path.open("rb") as file:
            file.seek(offset + span.first(format.rate) * format.frame_bytes)
            yield from pcm_frames(file, format)

    return Decoded(str(path), format.rate, frames())


def _warn_of_missing(name: str, header: WavHeader, size: int) -> None:
    second = header.format.rate * header.format.frame_bytes
    if header.data_bytes is not None and size > 0:
        log.warning(
            "%s is cut short: its header speaks of %.3g s, but it holds %.3g s.",
            *(name, header.data_bytes / second, size / second),
        )


class _Part:
    """A file as seen from one place to another: what libsndfile takes for a file of its own."""

    def __init__(self, file: BinaryIO, offset: int, end: int) -> None:
        self._file, self._offset, self._end = file, offset, end
        file.seek(offset)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: self._offset, os.SEEK_END: self._end}.get(whence, self._file.tell())
        return self._file.seek(start + offset) - self._offset

    def tell(self) -> int:
        return self._file.tell() - self._offset

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer)[: max(0, self._end - self._file.tell())]
        return self._file.readinto(room)  # type: ignore[attr-defined,no-any-return]

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._end - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left))


def _parts(file: BinaryIO, holes: Sequence[Hole] = ()) -> Iterator[SoundFile]:
    """The recordings in a file, one after the other: one, or several joined mp3s or oggs, or what
    is left of an mp3 between its holes.

    The one that was given has to be read to its end before the next is asked for.
    """
    import soundfile

    class Forward(soundfile.SoundFile):  # type: ignore[misc]
        """Read onwards only: else the library seeks after every read, which breaks an mp3."""

        @hushed()
        def __init__(self, file: _Part) -> None:
            super().__init__(file)

        def seekable(self) -> bool:
            return False

        @hushed()
        def seek(self, frame: int) -> int:
            return int(super().seek(frame))

        @hushed()
        def read(self, frames: int) -> Frames:
            block: Frames = super().read(frames, dtype="float32", always_2d=True)
            return block

    size = file.seek(0, os.SEEK_END)
    ends = [*links(file)[1:], *(hole.start for hole in holes), size]
    behind = {hole.start: hole.end for hole in holes}
    offset = 0
    while True:
        end = next(at for at in ends if at > offset)
        try:
            sound = Forward(_Part(file, offset, end))
        except soundfile.LibsndfileError as error:
            if not offset and end not in behind:
                raise UnknownFormatError(error.error_string.rstrip(".")) from None
            if end == size:
                return  # only tags remain
            offset = behind.get(end, end)
            continue
        with sound:
            if not offset and sound.format == "MP3":
                _check_mp3(file)
            yield sound
            offset = file.tell() if sound.format == "MP3" else end
            offset = behind.get(offset, offset)
            left = size - offset
            if left < (TAGS if sound.format == "MP3" else 1) and not frames_follow(file, offset):
                return


def _check_mp3(file: BinaryIO) -> None:
    """Refuse what libsndfile takes for an mp3, as it does plain samples, and hears noise."""
    place = file.tell()
    if not begins_as_mp3(file):
        raise UnknownFormatError("it does not begin as an mp3")
    file.seek(place)


def _frames(path: Path, first: int, rate: int, name: str) -> Iterator[Frames]:
    """The frames of a file from the given one on."""
    holes = mp3_holes(path)
    if holes:  # how long the pieces between them are nobody knows before they are decoded
        return skip(_sought(path, 0, rate, name, holes), first)
    return _sought(path, first, rate, name, ())


def _sought(
    path: Path, first: int, rate: int, name: str, holes: Sequence[Hole]
) -> Iterator[Frames]:
    with path.open("rb") as file:
        for sound in _parts(file, holes):
            if sound.samplerate != rate:
                log.warning("%s changes its sample rate on the way: the rest is left out.", name)
                return
            if first >= sound.frames:
                first -= sound.frames
                _run_to_end(sound)
                continue
            at = _seek(sound, first)
            if at is None and sound.format != "FLAC":
                return
            try:
                if at is None:
                    raise _DamagedError(first)
                yield from skip(_blocks(sound, at), first - at)
            except _DamagedError as error:
                yield from _behind(path, sound, error.frame, name)
            first = 0


def _seek(sound: SoundFile, frame: int) -> int | None:
    """Go to a frame, or to one before it; returns the frame reached, None where that is damaged."""
    import soundfile

    if sound.frames > UNKNOWN:
        return 0
    # An mp3 frame needs up to 24 before it to be complete.
    target = max(0, frame - sound.samplerate) if sound.format == "MP3" else frame
    try:
        return int(sound.seek(target)) if target else 0
    except soundfile.LibsndfileError:
        return None


def _run_to_end(sound: SoundFile) -> None:
    """Put the file where the sound ends, so that what follows can be opened."""
    if sound.format == "MP3" and sound.frames > 0:
        sound.seek(sound.frames - 1)
        sound.read(1)


class _DamagedError(Exception):
    """Nothing can be read from a frame on."""

    def __init__(self, frame: int) -> None:
        self.frame = frame


def _blocks(sound: SoundFile, at: int) -> Iterator[Frames]:
    """What follows the frame that was sought."""
    import soundfile

    while True:
        try:
            block: Frames = sound.read(BLOCK)
        except soundfile.LibsndfileError:
            raise _DamagedError(at) from None
        if not len(block):
            return
        at += len(block)
        yield block


def _behind(path: Path, sound: SoundFile, frame: int, name: str) -> Iterator[Frames]:
    """What can be read of a damaged recording from a frame on: of a flac ffmpeg finds the next
    piece that is whole, and its place."""
    hole = Hole(0, 0, frame / sound.samplerate)
    if sound.format != "FLAC" or not has_ffmpeg():
        more = sound.format == "FLAC"
        tell_damage(name, Span(), [hole], LOST_BUT_FOR_FFMPEG if more else LOST)
        return
    rest = skip(open_ffmpeg(path, Span(), name=name, complain=False).frames, frame)
    blocks = list(islice(rest, 2))
    goes_on = len(blocks) == 2 or frame + sum(map(len, blocks)) >= sound.frames
    if goes_on:
        tell_damage(name, Span(), [hole], SILENT)
    for block in chain(blocks, rest):
        frame += len(block)
        yield block
    if not goes_on or frame + UNFILLED * sound.samplerate < sound.frames < UNKNOWN:
        log.warning(CUT_SHORT, name)
