"""Parallel text to be voiced: TSV files, plain or compressed, a column per language."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dragoman.errors import DragomanError

_OPEN = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")  # a synthesiser takes a NUL for the end of the text


@dataclass(frozen=True, slots=True)
class Row:
    """One line: its number (from 1, as editors count) and its texts by language."""

    number: int
    text: dict[str, str]


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """A UTF-8 text file, decompressed on the way if its name says so; its faults are sentences."""
    if not path.is_file():
        raise DragomanError(f"There is no file {path}.")
    way = _OPEN.get(path.suffix, open)
    try:
        with way(path, "rt", encoding="utf-8-sig", newline="\n") as stream:  # type: ignore
            yield stream
    except UnicodeDecodeError as error:
        raise DragomanError(f"{path} is not UTF-8 text ({error.reason}).") from error
    except (lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise DragomanError(f"{path} cannot be read: {error}.") from error


def columns_of(path: Path, given: str | None) -> tuple[list[str], bool]:
    """The columns' names, and whether the first line is a header that names them.

    `given` (`en,de,_`) names them where the file does not; `_` is a column to ignore.
    """
    with open_text(path) as stream:
        first = stream.readline().rstrip("\r\n").split("\t")
    if first == [""]:
        raise DragomanError(f"{path} is empty, or its first line is.")
    if given:
        names = [name.strip() for name in given.split(",")]
        header = all(name in ("_", cell) for name, cell in zip(names, first, strict=False))
    elif all(_looks_like_language(cell) for cell in first):
        names, header = first, True
    else:
        raise DragomanError(
            f"{path} has no header of language codes; name its {len(first)} columns with "
            f"--columns, e.g. --columns {','.join(['en', 'de', '_', '_', '_'][: len(first)])}."
        )
    spoken = [name for name in names if name != "_"]
    if not spoken or not all(spoken):
        raise DragomanError(
            f"The columns of {path} are named {','.join(names)!r}; name at least one language, and "
            "call a column _ that is to be left out."
        )
    if len(set(spoken)) != len(spoken):
        raise DragomanError(f"The columns of {path} repeat a name: {', '.join(names)}.")
    return names, header


def read_rows(path: Path, names: list[str], header: bool) -> Iterator[Row]:
    """Rows in file order; a row with too few columns or broken text has an empty text there."""
    with open_text(path) as stream:
        for number, line in enumerate(stream, 1):
            if header and number == 1:
                continue
            cells = line.rstrip("\r\n").split("\t")
            cells += [""] * (len(names) - len(cells))
            pairs = zip(names, cells, strict=False)
            yield Row(number, {name: _clean(cell) for name, cell in pairs if name != "_"})


def joined(rows: Iterable[Row], share: float, most_words: int, seed: int) -> Iterator[Row]:
    """A share of the rows together with the row that follows: people say more than a sentence.

    A row that lacks a text stays alone, as the fault that it is: the other row's text would be all
    the translation that both have.
    """
    held: Row | None = None
    for row in rows:
        if held is not None:
            both = {code: f"{held.text[code]} {row.text[code]}" for code in held.text}
            whole = all((*held.text.values(), *row.text.values()))
            if whole and max(len(text.split()) for text in both.values()) <= most_words:
                yield Row(held.number, both)
                held = None
                continue
            yield held
        held = row if random.Random(f"{seed} join {row.number}").random() < share else None
        if held is None:
            yield row
    if held is not None:
        yield held


def _clean(cell: str) -> str:
    return _CONTROL.sub(" ", cell).strip()


def _looks_like_language(cell: str) -> bool:
    code, _, region = cell.partition("-")
    return code.isalpha() and code.islower() and len(code) in (2, 3) and len(region) <= 4
