"""Sound to wav files that are either complete or not there.

A file is written under a temporary name beside the wanted one and renamed at the end. What was
written is kept when the writer is closed, and thrown away when an error leaves its `with` block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from dragoman.audio.chunk import RATE, Samples
from dragoman.errors import DragomanError
from dragoman.files import put_in_place, sentences_for, temporary_for

if TYPE_CHECKING:
    from soundfile import SoundFile


class _KeptOrDiscarded(ABC):
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


class WavWriter(_KeptOrDiscarded):
    """A 16-bit wav that grows block by block."""

    def __init__(self, path: str | Path, rate: int = RATE, channels: int = 1) -> None:
        self.path = Path(path)
        self.rate = rate
        self.frames = 0
        self._part = temporary_for(self.path)
        self._file: SoundFile | None = self._open(channels)

    def write(self, samples: Samples) -> None:
        """Append samples of shape (frames,) or (frames, channels); beyond full scale is clipped."""
        if self._file is None:
            raise DragomanError(f"{self.path} is already closed.")
        try:
            self._file.write(np.clip(samples, -1.0, 1.0))
        except Exception as error:  # libsndfile tells a full disk in a class of its own
            self.discard()
            raise DragomanError(f"{self.path} cannot be written: {error}") from None
        self.frames += len(samples)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            with sentences_for(self.path):
                put_in_place(self._part, self.path)

    def discard(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._part.unlink(missing_ok=True)

    def _open(self, channels: int) -> SoundFile:
        import soundfile

        if self.path.is_dir():
            raise DragomanError(f"{self.path} is a folder; name a file to write to.")
        try:
            return soundfile.SoundFile(
                *(self._part, "w", self.rate, channels), subtype="PCM_16", format="WAV"
            )
        except Exception:  # libsndfile says 'System error' for all of it; the system knows better
            raise DragomanError(f"{self.path} cannot be written: {_why_not(self._part)}.") from None


def _why_not(path: Path) -> str:
    try:
        path.open("wb").close()
    except OSError as error:
        return error.strerror or str(error)
    path.unlink()
    return "the sound library refuses"


def write_wav(path: str | Path, samples: Samples, rate: int = RATE) -> None:
    """Write a whole clip, shape (frames,) or (frames, channels)."""
    with WavWriter(path, rate, 1 if samples.ndim == 1 else samples.shape[1]) as writer:
        writer.write(samples)


class StereoMix(_KeptOrDiscarded):
    """A stereo wav with the speaker on the left and the interpreter on the right.

    `hear` moves time on; `say` puts a piece of speech at its moment, which is now or later, since
    nobody interprets what is yet to be heard. So all before now can be written, and only what is
    still to be spoken is kept.
    """

    def __init__(self, path: str | Path) -> None:
        self._writer = WavWriter(path, RATE, channels=2)
        self._pending: deque[tuple[int, Samples]] = deque()

    def hear(self, source: Samples) -> None:
        """The next of the speaker."""
        self._writer.write(np.stack([source, self._right(len(source))], axis=1))

    def say(self, at: float, speech: Samples) -> None:
        """A piece of the interpreter's speech (16 kHz) at a moment in seconds.

        A moment that has passed becomes now. Pieces that overlap are heard together.
        """
        self._pending.append((max(round(at * RATE), self._writer.frames), speech))

    def close(self) -> None:
        """Let the interpreter finish, then keep the file."""
        end = max((at + len(speech) for at, speech in self._pending), default=0)
        while (left := end - self._writer.frames) > 0:
            self.hear(np.zeros(min(left, RATE), np.float32))
        self._writer.close()

    def discard(self) -> None:
        self._writer.discard()

    def _right(self, count: int) -> Samples:
        """What the interpreter says in the next `count` samples; what is over is forgotten."""
        now, out = self._writer.frames, np.zeros(count, np.float32)
        for at, speech in self._pending:
            first, last = max(at, now), min(at + len(speech), now + count)
            if first < last:
                out[first - now : last - now] += speech[first - at : last - at]
        self._pending = deque(p for p in self._pending if p[0] + len(p[1]) > now + count)
        return out
