"""`dragoman score`: latency and quality of a log, as a table or as JSON."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from dragoman.cli.app import GroupedCommand, GroupedOption
from dragoman.errors import DragomanError
from dragoman.metrics.instance import Unit
from dragoman.metrics.lines import Log
from dragoman.metrics.logs import find_log, read_log
from dragoman.metrics.score import AWARE, METRICS, Report, Score, score_corpus
from dragoman.metrics.timings import Compat, Computation, Rules

if TYPE_CHECKING:
    from rich.table import Table


@click.command(
    cls=GroupedCommand,
    epilog="Metrics: " + ", ".join(METRICS) + ". What they mean: docs/metrics.md.",
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--unit",
    type=click.Choice(get_args(Unit)),
    default="word",
    show_default=True,
    cls=GroupedOption,
    group="What is measured",
    help="What a delay belongs to.",
)
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    cls=GroupedOption,
    group="What is measured",
    help="Compute only this metric; may be repeated.",
)
@click.option(
    "--tokenizer",
    default="13a",
    show_default=True,
    cls=GroupedOption,
    group="What is measured",
    help="sacreBLEU's tokenizer for BLEU: 13a, intl, zh, char, …",
)
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    cls=GroupedOption,
    group="What is measured",
    help="A file with one reference per line, for a log that holds none.",
)
@click.option(
    "--ca",
    "computation",
    type=click.Choice(get_args(Computation)),
    cls=GroupedOption,
    group="How it is measured",
    help="Definition of computation-aware time.  [default: honest; cumulative with --compat]",
)
@click.option(
    "--length",
    type=click.Choice(["reference", "hypothesis"]),
    default="reference",
    show_default=True,
    cls=GroupedOption,
    group="How it is measured",
    help="Whose length sets the ideal pace.",
)
@click.option(
    "--compat",
    type=click.Choice(get_args(Compat)),
    cls=GroupedOption,
    group="How it is measured",
    help="Follow another tool to the digit.",
)
@click.option(
    "--skip-broken",
    is_flag=True,
    cls=GroupedOption,
    group="Input and output",
    help="Leave broken sentences out, and say so, instead of stopping.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    cls=GroupedOption,
    group="Input and output",
    help="Print one JSON object with the scores of every sentence.",
)
def command(
    path: Path,
    unit: Unit,
    metrics: tuple[str, ...],
    tokenizer: str,
    reference: Path | None,
    computation: Computation | None,
    length: Any,
    compat: Compat | None,
    skip_broken: bool,
    as_json: bool,
) -> None:
    """Score a log: latency and quality.

    PATH is a SimulEval folder or its instances.log, a simulstream log, or a trace of Dragoman's.
    """
    gc.disable()  # scoring makes a great many objects and no cycles, and then the process ends
    log = load(path, unit, strict=compat is None, skip=skip_broken)
    if reference is not None:
        log = with_references(log, reference)
    rules = Rules(
        unit=unit,
        length=length,
        computation=computation or ("cumulative" if compat else "honest"),
        compat=compat,
        source=log.source,
    )
    report = score_corpus(log.instances, rules, metrics or METRICS, tokenizer)
    show(log, report, as_json)


def show(log: Log, report: Report, as_json: bool) -> None:
    """Print the scores of a log; what could not be scored is said on standard error."""
    for problem in log.left_out:
        click.echo(f"left out: {problem}", err=True)
    for what, indices in report.problems.items():
        click.echo(_warning(what, indices, len(log.instances)), err=True)
    if as_json:
        _print_json(log, report)
    else:
        _print_table(log, report)


def load(path: Path, unit: Unit, *, strict: bool = True, skip: bool = False) -> Log:
    """Read what is to be scored: another tool's log or a trace of ours."""
    from dragoman.trace import is_trace, read_traces

    file = find_log(path)
    try:
        ours = is_trace(file)
    except OSError as error:
        raise DragomanError(f"Cannot read {file}: {error.strerror}.") from error
    if not ours:
        return read_log(file, unit, strict=strict, skip=skip)
    return Log(file, "Dragoman", [trace.instance(unit) for trace in read_traces(file)])


def with_references(log: Log, path: Path) -> Log:
    """Give the sentences of a log the references in a file, line by line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DragomanError(f"Cannot read the references in {path}: {error}.") from error
    if len(lines) != len(log.instances):
        raise DragomanError(
            f"{path} has {len(lines)} references but {log.path} has {len(log.instances)} sentences."
        )
    pairs = zip(log.instances, lines, strict=True)
    return replace(log, instances=[replace(i, reference=line) for i, line in pairs])


def _warning(what: str, indices: list[int], size: int) -> str:
    shown = ", ".join(map(str, indices[:10])) + (", …" if len(indices) > 10 else "")
    return f"{len(indices)} of {size} sentences have {what}: {shown}"


def _print_json(log: Log, report: Report) -> None:
    import sys

    import msgspec

    content = report.to_dict() | {"log": str(log.path), "left_out": log.left_out}
    sys.stdout.buffer.write(msgspec.json.encode(content) + b"\n")


def _print_table(log: Log, report: Report) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(f"[bold]{log.path}[/]  {log.kind}, {len(log.instances)} sentences")
    console.print(_table(report))
    # Most signatures differ only in the metric's name: say what they share once.
    names: dict[str, list[str]] = {}
    for name, score in report.scores.items():
        names.setdefault(score.signature.partition("|")[2], []).append(name)
    for signature, sharing in names.items():
        console.print(f"[dim]{' '.join(sharing)}|{signature}[/]", soft_wrap=True)


def _table(report: Report) -> Table:
    """Each metric on a line of its own, with its computation-aware twin beside it."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("metric", style="bold")
    table.add_column("score", justify="right")
    table.add_column("± 95 %", justify="right", style="dim")
    table.add_column("with computation", justify="right")
    table.add_column("± 95 %", justify="right", style="dim")
    table.add_column("")
    table.add_column("sentences", justify="right", style="dim")
    names = dict.fromkeys(name.removesuffix(AWARE) for name in report.scores)
    for name in names:
        plain, aware = report.scores.get(name), report.scores.get(name + AWARE)
        shown = [score for score in (plain, aware) if score is not None]
        sizes = dict.fromkeys(str(score.scored) for score in shown)
        table.add_row(name, *_cells(plain), *_cells(aware), shown[0].unit, " / ".join(sizes))
    return table


def _cells(score: Score | None) -> tuple[str, str]:
    """A score and half the width of its interval, as far as they are known."""
    if score is None:
        return "", ""
    if score.value != score.value:
        return "undefined", ""
    digits = 0 if abs(score.value) >= 1000 else 3 if abs(score.value) < 10 else 1
    error = score.interval().high - score.value
    return f"{score.value:,.{digits}f}", "" if error != error else f"{error:,.{digits}f}"
