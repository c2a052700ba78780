"""Take named members out of an archive. Nothing else in it is written, imported or run."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dragoman.store.download import SourceError
from dragoman.store.progress import Bar
from dragoman.store.records import PIECE


def append_members(
    archive: Path, title: str, members: dict[str, Path], limit: int, bar: Bar
) -> None:
    """Append each named member to its file; `limit` bytes in all is more than any can need."""
    opened = _open_zip if zipfile.is_zipfile(archive) else _open_tar
    try:
        with opened(archive, members) as found:
            missing = set(members)
            for member, stream in found:
                missing.discard(member)
                limit -= _append(stream, members[member], limit, title, bar)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise SourceError(f"{title} cannot be unpacked ({error})") from error
    if missing:
        raise SourceError(f"{title} has no member '{min(missing)}' that is a plain file")


@contextmanager
def _open_zip(archive: Path, members: dict[str, Path]) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    with zipfile.ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if name in members]
        yield ((name, opened.open(name)) for name in names)


@contextmanager
def _open_tar(archive: Path, members: dict[str, Path]) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """A tarball is read once, from front to back; links in it are not followed."""
    with tarfile.open(archive, "r|*") as opened:
        wanted = (item for item in opened if item.isreg() and item.name in members)
        yield ((item.name, stream) for item in wanted if (stream := opened.extractfile(item)))


def _append(stream: IO[bytes], to: Path, limit: int, title: str, bar: Bar) -> int:
    written = 0
    with stream, to.open("ab") as file:
        while piece := stream.read(PIECE):
            written += len(piece)
            if written > limit:
                raise SourceError(f"{title} unpacks to more than the catalogue names")
            file.write(piece)
            bar.advance(len(piece))
    return written
