"""Tables that are never cut: side by side where there is room, else one below the other.

In a pipe or a file a table is as wide as it needs to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


UNDEFINED = "-"
"""In the place of a number that there is not; so short that no table is wider for it."""


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column; the first of a table names its rows."""

    title: str
    dim: bool = False
    words: bool = False  # not numbers: what they begin with is below one another


def open_console() -> Console:
    """Standard output; never so narrow that a line is broken where nobody looks at it."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False)  # ':key:' in a name is the name
    if console.is_terminal:
        return console
    return Console(highlight=False, emoji=False, width=10_000)


def print_rows(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of cells, as a table if the console is wide enough; what is empty in all rows is
    left out."""
    filled = [n for n in range(len(columns)) if n == 0 or any(row[n].strip() for row in rows)]
    columns, rows = [columns[n] for n in filled], [[row[n] for n in filled] for row in rows]
    table = _table(columns, rows)
    needed = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    if needed <= console.width:
        console.print(table)
    else:
        _print_list(console, columns, rows)


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for number, column in enumerate(columns):
        style = "bold" if number == 0 else "dim" if column.dim else ""
        side = "left" if number == 0 or column.words else "right"
        table.add_column(column.title, style=style, justify=side, no_wrap=True)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    return table


def _print_list(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Each row as its name and a line per number."""
    width = max(len(column.title) for column in columns)
    for name, *cells in rows:
        console.print(f"[bold]{name}[/]", soft_wrap=True)
        for column, cell in zip(columns[1:], cells, strict=True):
            if cell.strip():
                console.print(f"  {column.title:{width}}  {cell.strip()}", soft_wrap=True)
