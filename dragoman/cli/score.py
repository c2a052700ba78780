"""`dragoman score`: latency and quality of a log, as a table or as JSON."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from dragoman.cli.app import GroupedCommand, GroupedOption
from dragoman.cli.report import show
from dragoman.errors import DragomanError
from dragoman.metrics.instance import Unit
from dragoman.metrics.lines import Log
from dragoman.metrics.logs import find_log, read_log
from dragoman.metrics.pieces import LongRules
from dragoman.metrics.resegment import ALIGNERS, Aligner
from dragoman.metrics.score import METRICS, Report, score_corpus
from dragoman.metrics.timings import Compat, Computation, Rules


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
    "--references",
    type=click.Path(path_type=Path),
    cls=GroupedOption,
    group="What is measured",
    help="A file with one reference per line, for a log that holds none or for --segments.",
)
@click.option(
    "--segments",
    type=click.Path(path_type=Path),
    cls=GroupedOption,
    group="Whole talks",
    help="Where the sentences of the references lie: a YAML list of wav, offset and duration. "
    "The output is cut into these sentences and scored sentence by sentence.",
)
@click.option(
    "--aligner",
    type=click.Choice(ALIGNERS),
    cls=GroupedOption,
    group="Whole talks",
    help="How to cut.  [default: mwer for StreamLAAL, soft for all else]",
)
@click.option(
    "--language",
    cls=GroupedOption,
    group="Whole talks",
    help="Split off punctuation as in this language (de, en, …) before soft alignment.",
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
    references: Path | None,
    segments: Path | None,
    aligner: Aligner | None,
    language: str | None,
    computation: Computation | None,
    length: Any,
    compat: Compat | None,
    skip_broken: bool,
    as_json: bool,
) -> None:
    """Score a log: latency and quality.

    PATH is a SimulEval folder or its instances.log, a simulstream log, or a trace of Dragoman's.
    """
    with _at_work():
        log = load(path, unit, strict=compat is None, skip=skip_broken)
        rules = Rules(
            unit=unit,
            length=length,
            computation=computation or ("cumulative" if compat else "honest"),
            compat=compat,
            source=log.source,
        )
        if segments is None:
            log = with_references(log, references) if references else log
            report = score_corpus(log.instances, rules, metrics or METRICS, tokenizer)
        else:
            long_rules = LongRules(aligner=aligner, language=language)
            report = _score_talks(log, segments, references, rules, long_rules, metrics, tokenizer)
    show(log, report, as_json)


@contextmanager
def _at_work() -> Iterator[None]:
    """Show that work goes on, and work without looking for garbage.

    Scoring makes a great many objects but no cycles of them; searching for these takes a tenth
    of the time.
    """
    gc.disable()
    try:
        if sys.stderr.isatty():
            from rich.console import Console

            with Console(stderr=True).status("Scoring …"):
                yield
        else:
            yield
    finally:
        gc.enable()


def _score_talks(
    log: Log,
    segments: Path,
    references: Path | None,
    rules: Rules,
    long_rules: LongRules,
    metrics: tuple[str, ...],
    tokenizer: str,
) -> Report:
    from dragoman.metrics.longform import LONG_METRICS, score_longform
    from dragoman.metrics.segments import read_segments

    if references is None:
        raise DragomanError("--segments needs --references: a file with each segment's reference.")
    wanted = read_segments(segments, references)
    return score_longform(
        log.instances, wanted, rules, long_rules, metrics or LONG_METRICS, tokenizer
    )


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
