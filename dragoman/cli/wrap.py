"""Lines on a terminal that break between words, while the text still grows."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import IO

from dragoman.text.languages import UNSPACED

USUAL = 80
"""Columns of a terminal that does not tell."""
_PIECES = re.compile(r"\n|[^\S\n]+|\S+")
_CLOSING = frozenset(".,;:!?…)]}”’»。、，．；：！？）］｝」』】〉》ー々")
_OPENING = frozenset("([{“‘«¿¡（［｛「『【〈《")


class Wrapped:
    """A terminal on which text is written as it comes.

    One column stays free, for a comma that comes after its word. Characters are counted as a
    terminal shows them: wide ones twice, accents and joiners not at all. A script without spaces
    breaks between characters, a word that is wider than the terminal wherever it has to.
    """

    def __init__(
        self, write: Callable[[str], None], columns: Callable[[], int], indent: int = 0
    ) -> None:
        """`columns` tells how wide the terminal is now; a line that goes on is indented."""
        self._write, self._columns, self._indent = write, columns, indent
        self._column = 0
        self._space = ""

    def write(self, text: str) -> None:
        """The next of the text, all of it written at once."""
        columns = self._columns()
        if self._column > columns:  # made narrower: it has laid out its lines anew
            self._column %= columns
        self._write("".join(self._laid_out(text, columns)))

    def _laid_out(self, text: str, columns: int) -> Iterator[str]:
        for piece in _PIECES.findall(text):
            if piece == "\n":
                self._column, self._space = 0, ""
                yield piece
            elif piece.isspace():
                self._space += piece
            else:
                for part in _parts(piece):
                    yield from self._placed(part, columns)

    def _placed(self, part: str, columns: int) -> Iterator[str]:
        """A part that may not be broken, on this line or on the next."""
        wanted = cells(part)
        space, self._space = self._space, ""
        # Only what belongs to the word before it may have the last column.
        room = columns - 1 if space or UNSPACED.match(part) else columns
        if self._column and self._column + cells(space) + wanted > room:
            indent = self._indent if 2 * self._indent < columns else columns // 8
            yield "\n" + " " * indent
            self._column, space = indent, ""
        yield space
        self._column += cells(space)
        if wanted <= columns:
            yield part
            self._column += wanted
            return
        for unit in _units(part):
            if self._column and self._column + cells(unit) > columns:
                yield "\n"
                self._column = 0
            yield unit
            self._column += cells(unit)


def filled(text: str, columns: int, indent: int = 0) -> str:
    """A whole text, broken between words."""
    lines: list[str] = []
    Wrapped(lines.append, lambda: columns, indent).write(text)
    return "".join(lines)


def fitted(text: str, stream: IO[str], indent: int = 0) -> str:
    """A text as it is written to a stream: broken between words where that is a terminal."""
    return filled(text, columns_of(stream), indent) if stream.isatty() else text


def columns_of(stream: IO[str]) -> int:
    """How wide the terminal behind a stream is now."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL
    except (OSError, ValueError):
        return USUAL


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def _parts(word: str) -> Iterator[str]:
    """A word, or the characters of a script without spaces, each with the marks beside it."""
    if not UNSPACED.search(word):
        yield word
        return
    part = ""
    for unit in _units(word):
        breaks = UNSPACED.match(unit) or UNSPACED.match(part[-1:])
        if part and breaks and unit[0] not in _CLOSING and part[-1] not in _OPENING:
            yield part
            part = ""
        part += unit
    yield part


def _units(word: str) -> Iterator[str]:
    """Characters as the eye sees them: with their accents and whatever else takes no room."""
    unit = ""
    for character in word:
        if unit and not _joins(character) and not unit.endswith("\u200d"):
            yield unit
            unit = ""
        unit += character
    yield unit


def _joins(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")
