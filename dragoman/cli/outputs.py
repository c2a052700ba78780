"""Where commands write: told before any work if nothing can be written there."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.files import sentences_for


def check_outputs(inputs: Sequence[Path | None], outputs: Sequence[Path | None]) -> None:
    """Refuse files that could not be written, or that the command reads; None is left out."""
    for path in outputs:
        if path is not None:
            _check_file(path, inputs)


def check_folder(folder: Path) -> None:
    """Make a folder, and refuse one in which nothing can be written."""
    probe = folder / f".dragoman.{os.getpid()}.tmp"
    with sentences_for(folder):
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()


def _check_file(path: Path, inputs: Sequence[Path | None]) -> None:
    for used in inputs:
        if used is not None and _same(path, used):
            raise DragomanError(f"{path} is read by this command; write to another file.")
    with sentences_for(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if path.exists():
            path.open("ab").close()
    check_folder(path.parent)


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one file, by whatever links."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False
