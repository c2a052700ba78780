"""Parallel text to be voiced: TSV files, plain or compressed, a column per language."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dragoman.errors import DragomanError

_OPEN = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


@dataclass(frozen=True, slots=True)
class Row:
    """One line: its number (from 1, as editors count) and its texts by language."""

    number: int
    text: dict[str, str]


def open_text(path: Path) -> IO[str]:
    """A UTF-8 text file, decompressed on the way if its name says so."""
    if not path.is_file():
        raise DragomanError(f"There is no file {path}.")
    return _OPEN.get(path.suffix, open)(path, "rt", encoding="utf-8", newline="\n")  # type: ignore


def columns_of(path: Path, given: str | None) -> tuple[list[str], bool]:
    """The columns' names, and whether the first line is a header that names them.

    `given` (`en,de,_`) names them where the file does not; `_` is a column to ignore.
    """
    with open_text(path) as stream:
        first = stream.readline().rstrip("\r\n").split("\t")
    if given:
        names = [name.strip() for name in given.split(",")]
        header = first == names
    elif all(_looks_like_language(cell) for cell in first):
        names, header = first, True
    else:
        raise DragomanError(
            f"{path} has no header of language codes; name its {len(first)} columns with "
            f"--columns, e.g. --columns {','.join(['en', 'de', '_', '_', '_'][: len(first)])}."
        )
    spoken = [name for name in names if name != "_"]
    if len(set(spoken)) != len(spoken):
        raise DragomanError(f"The columns of {path} repeat a name: {', '.join(names)}.")
    return names, header


def read_rows(path: Path, names: list[str], header: bool) -> Iterator[Row]:
    """Rows in file order; a row with too few columns or broken text has an empty text there."""
    try:
        with open_text(path) as stream:
            for number, line in enumerate(stream, 1):
                if header and number == 1:
                    continue
                cells = line.rstrip("\r\n").split("\t")
                cells += [""] * (len(names) - len(cells))
                pairs = zip(names, cells, strict=False)
                yield Row(number, {name: cell.strip() for name, cell in pairs if name != "_"})
    except UnicodeDecodeError as error:
        raise DragomanError(f"{path} is not UTF-8 text ({error.reason}).") from error
    except (lzma.LZMAError, EOFError, gzip.BadGzipFile) as error:
        raise DragomanError(f"{path} is damaged: {error}.") from error


def fingerprint(path: Path) -> str:
    """SHA-256 of the file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _looks_like_language(cell: str) -> bool:
    code, _, region = cell.partition("-")
    return code.isalpha() and code.islower() and len(code) in (2, 3) and len(region) <= 4
