"""Scores on the screen: a table with signatures, or JSON, and warnings on standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.cli.notes import tell
from dragoman.cli.tables import UNDEFINED, Column, open_console, print_rows
from dragoman.metrics.lines import Log
from dragoman.metrics.score import AWARE, Report, Score

if TYPE_CHECKING:
    from rich.console import Console


def show(log: Log, report: Report, as_json: bool) -> None:
    """Print the scores of a log; what could not be scored is said on standard error."""
    tell_problems(log, report)
    if as_json:
        _print_json(log, report)
    else:
        _print_table(log, report)


def tell_problems(log: Log, report: Report, where: str = "") -> None:
    """Say on standard error what of a log was not scored, and what is wrong with the rest; of
    several logs `where` this is."""
    for problem in log.left_out:
        named = where and str(log.path) not in problem
        tell(f"left out{where if named else ''}: {problem}")
    size = len(report.instances)
    for what, indices in report.problems.items():
        tell(f"Sentences{where} with {what}, {len(indices)} of {size}: {first_of(indices)}")


def first_of(indices: Sequence[int]) -> str:
    """Some of the sentences, by their numbers."""
    return ", ".join(map(str, indices[:10])) + (", …" if len(indices) > 10 else "")


def _print_json(log: Log, report: Report) -> None:
    print_object(report.to_dict() | {"log": str(log.path), "left_out": log.left_out})


def print_object(content: dict[str, Any]) -> None:
    """One JSON object on standard output, in which what is not a number is null."""
    import msgspec

    sys.stdout.buffer.write(msgspec.json.encode(content) + b"\n")


def _print_table(log: Log, report: Report) -> None:
    """A table, and under it how every score was computed."""
    from rich.markup import escape

    console = open_console()
    size, sentences = len(log.instances), len(report.instances)
    talks = "" if size == sentences else f"talks: {size}, "
    path, kind = escape(str(log.path)), escape(log.kind)  # '[draft]' is not markup
    console.print(f"[bold]{path}[/]  {kind}, {talks}sentences: {sentences}")
    print_rows(console, _COLUMNS, _rows(report))
    print_signatures(console, report)


def print_signatures(console: Console, report: Report) -> None:
    """How the scores were computed; what most signatures share is said once."""
    names: dict[str, list[str]] = {}
    for name, score in report.scores.items():
        names.setdefault(score.signature.partition("|")[2], []).append(name)
    for signature, sharing in names.items():
        console.print(f"[dim]{' '.join(sharing)}|{signature}[/]", soft_wrap=True)


_COLUMNS = (
    Column("metric"),
    Column("score"),
    Column("± 95 %", dim=True),
    Column("with computation"),
    Column("± 95 % with it", dim=True),
    Column("unit"),
    Column("sentences", dim=True),
)


def _rows(report: Report) -> list[list[str]]:
    """Each metric on a line of its own, with its computation-aware twin beside it."""
    rows = []
    names = dict.fromkeys(name.removesuffix(AWARE) for name in report.scores)
    for name in names:
        plain, aware = report.scores.get(name), report.scores.get(name + AWARE)
        shown = [score for score in (plain, aware) if score is not None]
        if name == "Erasure" and not shown[0].scored:
            continue  # only logs of what was shown and taken back have it
        sizes = dict.fromkeys(str(score.scored) for score in shown)
        rows.append([name, *_cells(plain), *_cells(aware), shown[0].unit, " / ".join(sizes)])
    return rows


def _cells(score: Score | None) -> tuple[str, str]:
    """A score and its error, as far as they are known."""
    if score is None:
        return "", ""
    if score.value != score.value:
        return UNDEFINED, ""
    digits = 0 if score.unit == "ms" else 3 if abs(score.value) < 10 else 2
    error = score.error()
    return f"{score.value:z,.{digits}f}", "" if error != error else f"{error:,.{digits}f}"
