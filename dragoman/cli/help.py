"""How `--help` is laid out, on a narrow terminal, too."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

import click

ROOM = 24
"""Columns that an explanation has beside its option; where there are fewer, it stands below."""
BELOW = 4
"""How far it is indented there."""
NARROWEST = 20
_HYPHEN = "\N{NON-BREAKING HYPHEN}"


class HelpFormatter(click.HelpFormatter):
    """As click lays out help, which thinks no terminal narrower than 50 columns, squeezes
    explanations into ten, and breaks the names of options."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        columns = shutil.get_terminal_size().columns - 2
        super().__init__(indent_increment, width, max_width)
        if width is None:
            self.width = max(min(self.width, columns), NARROWEST)

    def write_text(self, text: str) -> None:
        super().write_text(_unbroken(text))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        rows = [(name, _unbroken(about)) for name, about in rows]
        longest = min(max(len(name) for name, _ in rows), col_max)
        if self.width - self.current_indent - longest - col_spacing < ROOM:
            col_max = BELOW - col_spacing
        super().write_dl(rows, col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(_HYPHEN, "-")


class Context(click.Context):
    """What a command is called with: it says how its help is laid out."""

    formatter_class = HelpFormatter


def _unbroken(text: str) -> str:
    """Names such as `--max-latency` may be copied; no line ends within them."""
    return text.replace("-", _HYPHEN)
