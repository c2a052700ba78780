"""Writing that is never half done: a temporary name, then a rename; a full disk is a sentence. And
what tells a file from another of its name."""

from __future__ import annotations

import errno
import hashlib
import io
import itertools
import os
import platform
import re
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from dragoman.errors import DragomanError

_SENTENCES = {
    errno.ENOSPC: "the disk is full; make room and run the same command again",
    errno.EDQUOT: "the disk quota is used up; make room and run the same command again",
    errno.EFBIG: "files that large are not allowed here; see 'ulimit -f' and the file system",
    errno.EACCES: "writing there is not allowed; choose another folder",
    errno.EPERM: "writing there is not allowed; choose another folder",
    errno.EROFS: "that file system is read-only; choose another folder",
    errno.ENOENT: "no such folder can be made; choose another",
    errno.ENOTDIR: "there is a file where a folder should be; choose another folder",
    errno.EEXIST: "there is a file where a folder should be; choose another folder",
    errno.EISDIR: "there is a folder of that name; move it away",
    errno.ENAMETOOLONG: "that name is too long",
    errno.EIO: "the disk cannot be written; look after it",
}
MOST_NAME = 150
"""Bytes of a name to which others are added; file systems take 255, an é is two of them."""
_TEMPORARY = re.compile(r"\..+\.(\d+)\.(\d{1,9})\.tmp", re.DOTALL)
"""What `temporary_for` makes of a name: no system has processes with longer numbers."""
_numbers = itertools.count()
_DAY = 24 * 3600.0
LOCK = ".lock"
"""The file by which a folder is kept to one process."""
_LOOKED_AT = 1 << 20  # bytes at either end of a file


@contextmanager
def sentences_for(path: Path) -> Iterator[None]:
    """Turn an OSError of writing `path` into a DragomanError that says what to do."""
    try:
        yield
    except OSError as error:
        if (sentence := sentence_of(error, path)) is None:
            raise
        raise DragomanError(sentence) from error


def sentence_of(error: OSError, path: str | Path) -> str | None:
    """Why `path` cannot be written, and what to do; None for an error that is not about that."""
    reason = _SENTENCES.get(error.errno or 0)
    return f"Cannot write {path}: {reason}." if reason else None


def write_whole(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """A file as `write` makes it, in memory first: writers of archives (torch, numpy) cannot tell
    a full disk from other misfortunes."""
    made = io.BytesIO()
    write(made)
    with whole_file(path, "wb") as stream:
        stream.write(made.getbuffer())


@contextmanager
def kept(folder: Path, taken: Callable[[], None]) -> Iterator[None]:
    """Keep a folder to this process, or two would write into each other's files; a kill gives it
    back. If another process keeps it, `taken` refuses that; else it is waited for."""
    from filelock import FileLock, Timeout

    with sentences_for(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        try:
            holding = lock.acquire(timeout=0)
        except Timeout:
            taken()
            holding = lock.acquire()
    with holding:
        yield


def sweep(folder: Path) -> None:
    """Remove what processes that were killed have left half written; a machine that shares the
    folder has others, of which nobody knows here: what it has left goes after a day."""
    for path in folder.glob(".*.tmp"):
        named = _TEMPORARY.fullmatch(path.name)
        if named and is_left(path, *named.groups()):  # else somebody else named it
            remove(path)


def is_left(path: Path, number: str, pid: str) -> bool:
    """Whether nobody writes any more to what `temporary_for` named so."""
    ours = len(number) <= len(_here()) or number.startswith(_here())
    return not alive(int(pid)) if ours else _old(path)


@cache
def _here() -> str:
    """This machine, as ten digits."""
    return f"{zlib.crc32(platform.node().encode()):010}"


def _old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _DAY
    except OSError:  # it is gone by now
        return False


def remove(path: Path) -> None:
    """Remove a file or a whole folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to write to that gets its name only once it is complete."""
    temporary = temporary_for(path)
    try:
        with sentences_for(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            sweep(path.parent)
            temporary.mkdir()
            yield temporary
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def alive(pid: int) -> bool:
    """Whether there is such a process on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is somebody else's
        pass
    return True


@contextmanager
def whole_file(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file for writing that appears under its name only once it is complete.

    A device or a pipe is written as it is: another file in its place would be the end of it.
    """
    encoding = None if "b" in mode else "utf-8"
    with sentences_for(path):
        special = path.exists() and not path.is_file() and not path.is_dir()
    if special:
        with sentences_for(path), open(path, mode, encoding=encoding) as stream:
            yield stream
        return
    place = Path(os.path.realpath(path))  # a link stays one, and leads to what is written
    temporary = temporary_for(place)
    try:
        with sentences_for(path):
            place.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, mode, encoding=encoding) as stream:
                yield stream
            put_in_place(temporary, place)
    finally:
        with suppress(OSError):
            temporary.unlink()


def temporary_for(path: Path) -> Path:
    """Where a file or a folder lies until it is complete: beside its name, and known to `sweep`.

    Each call gives another name: threads, or machines that share a disk, may write the same file,
    and the last to be done has its name.
    """
    name = with_short_name(path).name
    return path.with_name(f".{name}.{_here()}{next(_numbers)}.{os.getpid()}.tmp")


def with_short_name(path: Path, most: int = MOST_NAME) -> Path:
    """The path, its name short enough for what a temporary one adds."""
    name = path.name
    while len(os.fsencode(name)) > most:
        name = name[:-1]
    return path.with_name(name)


def put_in_place(temporary: Path, path: Path) -> None:
    """Let a complete file have its name.

    The data is on the disk before the name is: a power cut leaves the old file or the new one.
    """
    with open(temporary, "rb+") as stream:
        os.fsync(stream.fileno())
    os.replace(temporary, path)


def digest_of_ends(path: Path) -> str:
    """Enough of a file to tell it from another, without reading gigabytes."""
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(_LOOKED_AT))
        file.seek(max(0, path.stat().st_size - _LOOKED_AT))
        digest.update(file.read())
    return digest.hexdigest()
