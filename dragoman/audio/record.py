"""What was heard, kept on disk as it is heard: whole when the talk ends, however it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.audio.chunk import RATE, Chunk
from dragoman.errors import DragomanError
from dragoman.files import sentence_of

SUFFIXES = (".flac", ".wav")
_MORE = 1 << 16  # bytes that a file which could not be written is tried with


def check_record(path: Path) -> None:
    """A recording cannot be made again: none is overwritten."""
    if path.exists():
        raise DragomanError(f"{path} is there already; choose another name for the recording.")


@contextmanager
def recorded(
    path: Path,
    chunks: Iterator[Chunk],
    stop: Callable[[], None],
    report: Callable[[str], None],
) -> Iterator[Iterator[Chunk]]:
    """The same chunks, each on the disk before anybody works on it.

    At the end, be it by an error, the source is stopped and what it has captured is kept, too. A
    process that is killed leaves a file that can be read up to its last quarter of a second. A
    disk that is full is reported once and ends the recording, not the talk.
    """
    import soundfile

    check_record(path)
    try:
        file = soundfile.SoundFile(path, "w", RATE, 1)
    except Exception as error:  # libsndfile has a class of its own
        raise DragomanError(f"The recording {path} cannot be written: {error}") from None

    def kept() -> Iterator[Chunk]:
        sound = True
        for chunk in chunks:
            if sound:
                try:
                    file.write(chunk.samples)
                    file.flush()
                except Exception as error:
                    sound = False
                    report(f"The recording ends here. {_why_not(path, error)}")
            yield chunk

    taken = kept()
    try:
        yield taken
    finally:
        try:
            stop()
            for _ in taken:
                pass
        finally:
            file.close()


def _why_not(path: Path, error: Exception) -> str:
    """Why a file cannot grow: libsndfile says 'System error' for all of it; the system knows
    better. The file is left as it was."""
    size = path.stat().st_size
    try:
        with path.open("ab") as file:
            file.write(bytes(_MORE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as found:
        error = found
    finally:
        os.truncate(path, size)
    told = sentence_of(error, path) if isinstance(error, OSError) else None
    return told or f"Cannot write {path}: {str(error).rstrip('.')}."
