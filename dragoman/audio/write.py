"""Sound to files that are either complete or not there; the suffix says how it is written.

A file is written under a temporary name beside the wanted one and renamed at the end. What was
written is kept when the writer is closed, and thrown away when an error leaves its `with` block.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from dragoman.audio.chunk import RATE, Samples
from dragoman.audio.resample import Resampler
from dragoman.errors import DragomanError
from dragoman.files import put_in_place, sentence_of, sentences_for, temporary_for

if TYPE_CHECKING:
    from soundfile import SoundFile

FORMATS = {
    ".wav": ("WAV", "PCM_16"),
    ".flac": ("FLAC", "PCM_16"),
    ".mp3": ("MP3", "MPEG_LAYER_III"),
    ".ogg": ("OGG", "VORBIS"),
    ".opus": ("OGG", "OPUS"),
}
_RATES = {
    "OPUS": (16000, 24000, 48000),
    "MPEG_LAYER_III": (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000),
}
"""The rates of formats that know only some."""
_MOST_CHANNELS = {".mp3": 2, ".flac": 8, ".ogg": 8, ".opus": 8}
_WAV_BYTES = 0xFFFF_0000
"""A wav counts its bytes in 32 bits; RF64, which begins in the same way, in 64."""


class KeptOrDiscarded(ABC):
    """A `with` block that keeps the file, unless an error leaves it."""

    @abstractmethod
    def close(self) -> None:
        """Keep what was written, under the wanted name."""

    @abstractmethod
    def discard(self) -> None:
        """Leave no trace; what had the wanted name before stays."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


class SoundWriter(KeptOrDiscarded):
    """A sound file that grows block by block; one that cannot be written any more is thrown away.

    `named` is the file that a fault is told of, where this one is only a part of it; `format` is
    what libsndfile calls its own, where the suffix does not say it. `length` is how many frames
    will come, where that is known: a long wav needs other numbers.
    """

    def __init__(
        self,
        path: str | Path,
        rate: int = RATE,
        channels: int = 1,
        named: Path | None = None,
        format: tuple[str, str] | None = None,
        length: int = 0,
    ) -> None:
        self.path = Path(path)
        self._named = named or self.path
        self.rate, self.channels = rate, channels
        self.frames = 0
        self._format = format or format_of(self.path)
        if self._format == FORMATS[".wav"] and 2 * channels * length > _WAV_BYTES:
            self._format = ("RF64", "PCM_16")
        self._file_rate = _file_rate(self._format[1], rate)
        self._resamplers = [Resampler(rate, self._file_rate) for _ in range(channels)]
        self._place = self.path.resolve()  # a link stays one, and leads to what is written
        self._part = temporary_for(self._place)
        self._disk = self._open_disk()
        self._file: SoundFile | None = self._open(channels)

    @property
    def is_open(self) -> bool:
        """Whether more can be written: it was neither kept nor thrown away."""
        return self._file is not None

    def write(self, samples: Samples) -> None:
        """Append samples of shape (frames,) or (frames, channels); beyond full scale is clipped."""
        if self._file is None:
            raise DragomanError(f"{self.path} is already closed.")
        tracks = zip(self._resamplers, np.atleast_2d(samples.T), strict=True)
        self._append([resampler.feed(track) for resampler, track in tracks])
        self.frames += len(samples)

    def close(self) -> None:
        if self._file is not None:
            self._append([resampler.finish() for resampler in self._resamplers])
            self._end()
            if self._disk.fault is not None:
                self._part.unlink(missing_ok=True)
                raise DragomanError(self._why_not(self._disk.fault))
            with sentences_for(self.path):
                put_in_place(self._part, self._place)

    def discard(self) -> None:
        if self._file is not None:
            self._end()
            self._part.unlink(missing_ok=True)

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._disk.close()

    def _append(self, tracks: list[Samples]) -> None:
        assert self._file is not None
        sound = np.stack(tracks, axis=1)
        if self._format[1] != "FLOAT":
            sound = np.clip(sound, -1.0, 1.0)
        try:
            for block in _blocks(sound):
                self._file.write(block)
        except Exception as error:  # libsndfile tells a full disk in a class of its own
            self.discard()
            raise DragomanError(self._why_not(self._disk.fault or error)) from None

    def _why_not(self, error: Exception) -> str:
        told = sentence_of(error, self._named) if isinstance(error, OSError) else None
        return told or f"Cannot write {self._named}: {str(error).rstrip('.')}."

    def _open_disk(self) -> _Disk:
        try:
            return _Disk(self._part)
        except OSError as error:
            raise DragomanError(f"{self._named} cannot be written: {error.strerror}.") from None

    def _open(self, channels: int) -> SoundFile:
        import soundfile

        kind, subtype = self._format
        try:
            return soundfile.SoundFile(
                *(self._disk, "w", self._file_rate, channels), subtype=subtype, format=kind
            )
        except Exception as error:
            self._disk.close()
            self._part.unlink(missing_ok=True)
            raise DragomanError(self._why_not(self._disk.fault or error)) from None


class _Disk:
    """A file that libsndfile writes to; it tells nobody of what found no room when it was closed,
    and of nothing why."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self.fault: OSError | None = None

    def write(self, data: bytes) -> int:
        left = memoryview(data)
        try:
            while left:  # a disk that is nearly full takes a part
                left = left[self._file.write(left) :]
        except OSError as error:
            self.fault = self.fault or error
        return len(data) - len(left)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def format_of(path: Path) -> tuple[str, str]:
    """What libsndfile calls the format of a file, by its suffix; a sentence if it has none, or if
    something is there that is no file."""
    check_place(path)
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        raise DragomanError(f"Sound is written to {', '.join(FORMATS)} files, not to {path}.")
    return found


def check_place(path: Path) -> None:
    """Refuse a name that something has that is no file."""
    with sentences_for(path):
        folder, there = path.is_dir(), path.exists()
    if folder:
        raise DragomanError(f"{path} is a folder; name a file to write to.")
    if there and not path.is_file():  # the finished file would take its place
        raise DragomanError(f"{path} is a device or a pipe; name a file to write to.")


def check_channels(path: Path, channels: int) -> None:
    """Refuse a file of a kind that does not take so many channels."""
    most = _MOST_CHANNELS.get(path.suffix.lower(), channels)
    if channels > most:
        raise DragomanError(
            f"{path} takes {most} channels at most, and the recording has {channels}; name a .wav "
            "file."
        )


def _file_rate(subtype: str, rate: int) -> int:
    """The rate of a file for sound of a rate, where the format knows only some."""
    rates = _RATES.get(subtype, (rate,))
    return next((known for known in rates if known >= rate), rates[-1])


def _blocks(sound: Samples) -> Iterator[Samples]:
    """Pieces that the encoders of libsndfile can take: Vorbis keeps them on the stack."""
    for start in range(0, len(sound), RATE):
        yield sound[start : start + RATE]


def write_sound(path: str | Path, samples: Samples, rate: int = RATE) -> None:
    """Write a whole clip, shape (frames,) or (frames, channels)."""
    with SoundWriter(path, rate, 1 if samples.ndim == 1 else samples.shape[1]) as writer:
        writer.write(samples)
