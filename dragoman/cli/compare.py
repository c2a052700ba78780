"""`dragoman compare`: do two systems differ on the same corpus, and by how much?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from math import isnan, nan
from pathlib import Path

import click
import numpy as np

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.notes import tell
from dragoman.cli.ranges import PATH, Number, Whole
from dragoman.cli.report import first_of, print_object, print_signatures, tell_problems
from dragoman.cli.same_recordings import lengths_of, tell_other_lengths
from dragoman.cli.scoring import Scoring, at_work, scoring_options
from dragoman.cli.tables import UNDEFINED, Column, open_console, print_rows
from dragoman.errors import DragomanError
from dragoman.metrics.doubts import SAME_LENGTH
from dragoman.metrics.instance import Instance
from dragoman.metrics.lines import Log
from dragoman.metrics.score import AWARE, Report
from dragoman.metrics.significance import Comparison, Measure, Sampling, compare
from dragoman.metrics.timings import Medium

_significance = grouped("Significance")
_files = grouped("Input and output")


@click.command(
    cls=GroupedCommand,
    epilog="What the intervals and p-values mean: docs/significance.md.",
)
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@scoring_options
@_significance(
    "--resamples",
    type=Whole(1, 1_000_000),
    default=1000,
    help="How often to resample the sentences.",
)
@_significance(
    "--seed",
    type=Whole(0),
    default=12345,
    help="Where the random draws start; the same seed gives the same result.",
)
@_significance(
    "--level",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="How sure the interval of the difference is.",
)
@_files(
    "--common",
    is_flag=True,
    help="Compare the sentences that both logs have, and say which one of them lacks.",
)
@_files(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object.",
)
def command(
    first: Path,
    second: Path,
    scoring: Scoring,
    resamples: int,
    seed: int,
    level: float,
    common: bool,
    as_json: bool,
) -> None:
    """Compare two logs of the same corpus: differences, how sure they are, and p-values.

    FIRST and SECOND are what `dragoman score` takes; the difference is SECOND minus FIRST.

    \b
    dragoman compare runs/wait-3 runs/wait-5
    """
    sampling = Sampling(resamples, seed, level)
    one, one_report = scoring.score(first)
    other, other_report = scoring.score(second)
    for log, report in ((one, one_report), (other, other_report)):
        tell_problems(log, report, f" of {log.path}")
    if scoring.references:  # which make the texts the same, whatever was heard
        tell_other_lengths(one, other, talks=scoring.segments is not None)
    if common:
        one_report, other_report = shared(one, one_report, other, other_report)
    with at_work("Resampling …"):
        pairs = matched(one, one_report, other, other_report)
        comparisons = compare([a for a, _ in pairs], [b for _, b in pairs], sampling)
    comparisons = [_numbered(each, one_report.instances) for each in comparisons]
    for log, lacks in ((one, "first_lacks"), (other, "second_lacks")):
        _tell_lacking(log, comparisons, lacks, len(one_report.instances))
    comparisons = [each for each in comparisons if each.sentences]
    compared = {each.name: one_report.scores[each.name] for each in comparisons}
    report = replace(one_report, scores=compared)  # with no signature of what is not here
    if as_json:
        _print_json(one, other, report, comparisons, sampling)
    else:
        _print_table(one, other, report, comparisons, sampling)


def shared(one: Log, one_report: Report, other: Log, other_report: Report) -> tuple[Report, Report]:
    """Both reports with the sentences alone that the other has, too; the others are told."""
    indices = [{i.index for i in report.instances} for report in (one_report, other_report)]
    both = indices[0] & indices[1]
    if not both:
        raise DragomanError(f"{one.path} and {other.path} have no sentence in common.")
    for log, own in ((one, indices[1]), (other, indices[0])):
        if lacks := sorted(own - both):
            tell(f"Sentences that {log.path} lacks, {len(lacks)}: {first_of(lacks)}")
    return _with_only(one_report, both), _with_only(other_report, both)


def _with_only(report: Report, indices: set[int]) -> Report:
    rows = [row for row, i in enumerate(report.instances) if i.index in indices]
    scores = {}
    for name, score in report.scores.items():
        measure = score.measure.of(rows)
        sentences = score.sentences[rows]
        value = nan if np.isnan(sentences).all() else measure.value
        scores[name] = replace(score, measure=measure, sentences=sentences, value=value)
    return replace(report, instances=[report.instances[row] for row in rows], scores=scores)


def matched(
    one: Log, one_report: Report, other: Log, other_report: Report
) -> list[tuple[Measure, Measure]]:
    """The statistics of both systems on the same sentences in the same order."""
    places = {instance.index: row for row, instance in enumerate(other_report.instances)}
    indices = [instance.index for instance in one_report.instances]
    if len(places) != len(indices) or any(index not in places for index in indices):
        raise DragomanError(
            f"{one.path} has {len(indices)} sentences and {other.path} has {len(places)}, and "
            "they are not the same: only outputs for one corpus can be compared. --common compares "
            "those that both have."
        )
    order = [places[index] for index in indices]
    for instance, row in zip(one_report.instances, order, strict=True):
        if differs := _difference(instance, other_report.instances[row], one.source):
            raise DragomanError(
                f"Sentence {instance.index} {differs} in {one.path} and {other.path}: only outputs "
                "for one corpus can be compared."
            )
    pairs = []
    for name, score in one_report.scores.items():
        if name not in other_report.scores:
            continue  # BLEU_NFKC, which only a log with letters of odd width has
        if isnan(score.value) and isnan(other_report.scores[name].value):
            continue  # such as BLEU without references
        measure = other_report.scores[name].measure
        if score.signature != other_report.scores[name].signature:
            raise DragomanError(f"{name} is measured in different ways in the two logs.")
        pairs.append((score.measure, measure.of(order)))
    return pairs


def _difference(one: Instance, other: Instance, source: Medium) -> str | None:
    """What shows that two instances are not the same sentence."""
    if one.references != other.references:
        return "has different references"
    if one.reference is None and abs(one.source_length - other.source_length) > SAME_LENGTH:
        return f"is {lengths_of(one, other, source)} long"
    return None


def _numbered(each: Comparison, instances: Sequence[Instance]) -> Comparison:
    """A comparison that tells sentences by their numbers in the logs."""
    lacks = (each.first_lacks, each.second_lacks)
    first, second = (tuple(sorted(instances[row].index for row in rows)) for rows in lacks)
    return replace(each, first_lacks=first, second_lacks=second)


def _tell_lacking(log: Log, comparisons: Sequence[Comparison], lacks: str, size: int) -> None:
    """Say on standard error which sentences were left out for a log, and of which metrics."""
    names: dict[tuple[int, ...], list[str]] = {}
    for each in comparisons:
        names.setdefault(getattr(each, lacks), []).append(each.name)
    for indices, sharing in names.items():
        if indices:
            tell(
                f"Left out of {_with_twins(sharing)}: sentences without a value in {log.path}, "
                f"{len(indices)} of {size}: {first_of(indices)}"
            )


def _with_twins(names: Sequence[str]) -> str:
    """Metrics by their names, of which a computation-aware one goes with its plain one."""
    alone = [name for name in names if name.removesuffix(AWARE) not in {*names} - {name}]
    return " ".join(alone) + f" and their {AWARE}" * (len(alone) < len(names))


def _print_json(
    one: Log, other: Log, report: Report, comparisons: list[Comparison], sampling: Sampling
) -> None:
    content = {
        "first": str(one.path),
        "second": str(other.path),
        "sentences": len(report.instances),
        "sampling": asdict(sampling),
        "metrics": {each.name: asdict(each) for each in comparisons},
        "signature": {name: score.signature for name, score in report.scores.items()},
    }
    print_object(content)


def _print_table(
    one: Log, other: Log, report: Report, comparisons: list[Comparison], sampling: Sampling
) -> None:
    from rich.markup import escape

    console = open_console()
    for title, log in (("first", one), ("second", other)):
        console.print(f"{title:7} [bold]{escape(str(log.path))}[/]", soft_wrap=True)
    size = len(report.instances)
    fewer = any(each.sentences < size for each in comparisons)
    counts = [str(each.sentences) if fewer else "" for each in comparisons]
    print_rows(console, _columns(sampling.level), _rows(report, comparisons, counts))
    counted = f"sentences: {size}" + ", n: those with a value in both" * fewer
    console.print(
        f"[dim]{counted}, resamples: {sampling.resamples}, seed {sampling.seed}. p-values: paired "
        "bootstrap, random swaps, paired t-test; * all three are below 0.05.[/]"
    )
    print_signatures(console, report)


def _columns(level: float) -> list[Column]:
    plain = ("metric", "first", "second", "change", f"{100 * level:g} % interval")
    return [*map(Column, plain), *(Column(p, dim=True) for p in ("boot", "swap", "t", "n"))]


def _rows(
    report: Report, comparisons: Sequence[Comparison], counts: Sequence[str]
) -> list[list[str]]:
    rows = []
    for each, count in zip(comparisons, counts, strict=True):
        digits = 0 if report.scores[each.name].unit == "ms" else 2
        low, high = each.interval.low, each.interval.high
        chances = (each.p_bootstrap, each.p_randomisation, each.p_t_test)
        star = "*" if all(p < 0.05 for p in chances) else " "
        rows.append(
            [
                each.name,
                _number(each.first, digits),
                _number(each.second, digits),
                _number(each.difference, digits, sign="+") + star,
                "" if isnan(low) else f"{low:z,.{digits}f} … {high:z,.{digits}f}",
                *("" if isnan(p) else f"{p:.3f}".lstrip("0") for p in chances),
                count,
            ]
        )
    return rows


def _number(value: float, digits: int, sign: str = "") -> str:
    return UNDEFINED if isnan(value) else f"{value:{sign}z,.{digits}f}"
