"""Where commands write: told before any work if nothing can be written there, or if something
would be destroyed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from dragoman.errors import DragomanError, either
from dragoman.files import sentence_of, sentences_for

ROOM = 1 << 16
"""Bytes for which there must be room on the disk; how many a talk needs, nobody knows before."""

EACH = "{name}"
"""Stands for the name of each recording in the names of the files that are made of it."""

_Identity = tuple[object, ...]


def check_outputs(inputs: Sequence[str | Path | None], outputs: Sequence[Path | None]) -> None:
    """Refuse files that could not be written, that the command reads ('-': from standard input),
    or that it would write twice, by whatever path; None is left out."""
    taken = {_identity(path): f"{path} is read by this command" for path in inputs if path}
    taken[_identity_of(1)] = "standard output goes there"
    for path in outputs:
        if path is None:
            continue
        found = _identity(path)
        if found is not None and found in taken:
            raise DragomanError(f"Cannot write {path}: {taken[found]}; choose another file.")
        taken[found] = f"{path} is written by another option"
        _check_file(path)


def check_suffix(option: str, path: Path | None, suffixes: Sequence[str]) -> None:
    """Refuse a name that promises another format than is written."""
    if path is not None and path.suffix.lower() not in suffixes:
        known, name = either(suffixes), "a folder" if path.name == EACH else path.name
        raise DragomanError(f"{option} writes a {known} file, not {name}; change the name.")


def check_folder(folder: Path) -> None:
    """Make a folder, and refuse one in which nothing can be written."""
    _check_room(folder, folder)


def check_standard_output() -> None:
    """Refuse a standard output that could not take what a command says when all is done."""
    try:
        os.write(1, b"")  # which /dev/full refuses, too
        disk = os.fstatvfs(1)
        if stat.S_ISREG(os.fstat(1).st_mode) and disk.f_bavail * disk.f_frsize < ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        if sentence := sentence_of(error, "standard output"):
            raise DragomanError(sentence) from error  # else it is closed: nobody wants to know


def _check_room(folder: Path, named: Path) -> None:
    """Write something there and take it away; `named` is what a fault is told of."""
    probe = folder / f".dragoman.{os.getpid()}.tmp"
    with sentences_for(named):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with probe.open("wb") as file:
                file.write(bytes(ROOM))
                file.flush()
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)


def _check_file(path: Path) -> None:
    with sentences_for(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            # A device or a pipe, which may wait when it is opened.
            if not os.access(path, os.W_OK):
                raise DragomanError(f"Cannot write {path}: that is not allowed.")
            if path.is_char_device():
                _check_device(path)
            return
        if path.exists():
            path.open("ab").close()
    _check_room(path.resolve().parent, path)


def _check_device(path: Path) -> None:
    """Write nothing, which /dev/full refuses, too."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        os.write(descriptor, b"")
    finally:
        os.close(descriptor)


def _identity(path: str | Path) -> _Identity | None:
    """What is the same by every path to a file; None where it does not matter."""
    if str(path) == "-":
        return _identity_of(0)
    try:
        return _identity_by(os.stat(path))
    except (OSError, ValueError):  # not there yet
        return (os.path.realpath(path),)


def _identity_of(descriptor: int) -> _Identity | None:
    try:
        return _identity_by(os.fstat(descriptor))
    except OSError:  # it is closed
        return None


def _identity_by(found: os.stat_result) -> _Identity | None:
    """Terminals and /dev/null take from everybody; nothing is destroyed there."""
    return None if stat.S_ISCHR(found.st_mode) else (found.st_dev, found.st_ino)
