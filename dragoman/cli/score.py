"""`dragoman score`: latency and quality of a log, as a table or as JSON."""

from __future__ import annotations

from pathlib import Path

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.outputs import check_outputs
from dragoman.cli.ranges import PATH
from dragoman.cli.report import show
from dragoman.cli.scoring import Scoring, scoring_options
from dragoman.errors import DragomanError
from dragoman.metrics.logs import find_log
from dragoman.metrics.score import METRICS

_talks = grouped("Whole talks")
_files = grouped("Input and output")


@click.command(
    cls=GroupedCommand,
    epilog="Metrics: "
    + ", ".join(METRICS)
    + "; with --comet COMET; of whole talks LongAL, LongLAAL, LongDAL, LongAP, LongYAAL and "
    "StreamLAAL. What they mean: docs/metrics.md and docs/longform.md.",
)
@click.argument("path", type=PATH)
@scoring_options
@_talks(
    "--resegmented",
    type=PATH,
    metavar="FILE",
    help="Write what was said of each segment, as OmniSTEval's instances.resegmented.jsonl.",
)
@_files(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object with the scores of every sentence.",
)
def command(path: Path, scoring: Scoring, resegmented: Path | None, as_json: bool) -> None:
    """Score a log: latency and quality.

    PATH is a SimulEval folder or its instances.log, a simulstream log, or a trace of Dragoman's.
    With --references it may be plain text, a line per sentence, which has quality and no latency.

    \b
    dragoman score instances.log
    dragoman score talk.jsonl --references talk.en.txt --to en --json
    """
    if resegmented is not None and scoring.segments is None:
        raise DragomanError("--resegmented writes the segments of talks: name them (--segments).")
    check_outputs([find_log(path), *scoring.files], [resegmented])
    log, report = scoring.score(path)
    if resegmented is not None:
        scoring.write_resegmented(resegmented, log, report)
    show(log, report, as_json)
