"""`dragoman sweep`: many policies over one corpus, compared in a report."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.corpus_options import (
    chosen_workers,
    corpus_options,
    followed,
    read_first,
    tell_failures,
    tell_left_out,
    without_reference,
)
from dragoman.cli.notes import tell, told_if_stopped, warned_once
from dragoman.cli.outputs import check_folder, check_standard_output
from dragoman.cli.ranges import PATH, POLICY_SPECS, STEPS, Number
from dragoman.cli.setup_options import read_setup, shared_setup_options
from dragoman.cli.tables import UNDEFINED
from dragoman.cli.wrap import fitted

if TYPE_CHECKING:
    from dragoman.evaluate.report import SystemResult

_sweep = grouped("Sweep")


@click.command(cls=GroupedCommand)
@click.argument("corpus", type=PATH)
@click.argument("output", type=PATH)
@shared_setup_options
@_sweep(
    "--policies",
    type=POLICY_SPECS,
    multiple=True,
    metavar="SPEC",
    help="Such as 'wait-k:k=1|3|5'; repeat it for others.",
)
@_sweep("--steps", type=STEPS, default="1s", help="Steps to try, such as 500ms,1s,2s.")
@_sweep(
    "--sound",
    type=Number(min=0),
    default=20.0,
    metavar="MB",
    help="Recordings in the report, at most; 0 leaves them out.",
)
@corpus_options
def command(
    corpus: Path,
    output: Path,
    policies: tuple[str, ...],
    steps: list[float],
    sound: float,
    references: tuple[Path, ...],
    limit: int | None,
    jobs: int,
    cluster: str | None,
    together: int,
    **options: Any,
) -> None:
    """Interpret CORPUS with every policy and step; write runs, scores and a report to OUTPUT.

    Without --policies, every policy that the model can follow is tried over its usual range. A
    sweep that was interrupted goes on where it stopped.

    \b
    dragoman sweep corpus.tsv out --from de
    dragoman sweep corpus.tsv out --from de --policies 'wait-k:k=1|3' --steps 1s
    """
    from dragoman.cli.progress import clip_progress
    from dragoman.evaluate.grid import STANDARD, grid, slug
    from dragoman.evaluate.report import write_report, write_scores
    from dragoman.evaluate.result import Scorer, system_result, system_words
    from dragoman.evaluate.run import Failure, nothing_heard, run_corpus
    from dragoman.evaluate.sounds import spoken_clips
    from dragoman.evaluate.sparing import Sparing
    from dragoman.metrics import simuleval_log
    from dragoman.setup import System

    click.get_current_context().with_resource(warned_once())
    base = read_setup(**options)
    setups = grid(base, policies or STANDARD, steps)
    scorer = Scorer.of(base.target)
    clips = read_first(corpus, base, references, limit)
    check_folder(output)
    check_standard_output()
    workers, system = chosen_workers(jobs, cluster, base), System(base)
    if cluster is None:
        setups = followed(setups, bool(policies), clips, System(base) if workers else system)
    spoken = spoken_clips(clips, base.source, sound)
    results: list[SystemResult] = []
    told: set[Failure] = set()
    failed = 0
    lacking = without_reference(clips, base.target)
    title = f"{base.source or 'any language'} to {base.target}: {corpus.name}"

    def write() -> None:
        model = f"{base.model}{system_words(base)}"
        lead = f"{model}, {len(clips)} clips"
        lead += f" ({lacking} without a reference)" * bool(lacking)
        lead += f", {len(results)} of {len(setups)} systems"
        lead += f"; {failed} failed in code of their own" * bool(failed)
        write_report(output / "report.html", title, lead, results, spoken)
        write_scores(output / "scores.tsv", results)

    sparing = Sparing(write)  # a report of a hundred systems takes seconds to write
    try:
        for number, setup in enumerate(setups, start=1):
            name = f"{number}/{len(setups)} {setup.policy}"
            with told_if_stopped(), clip_progress(name) as on_clip:
                own = None if workers else system.changed(**asdict(setup))
                folder = output / slug(setup)
                run = run_corpus(
                    *(clips, setup, folder),
                    workers=workers,
                    together=together,
                    system=own,
                    on_clip=on_clip,
                )
            if not run.traces and all(failure.own for failure in run.failures):
                tell_left_out(nothing_heard(run.failures), setup)
                failed += 1
                continue
            tell_failures((f for f in run.failures if f.own or f not in told), setup)
            told.update(run.failures)
            results.append(system_result(setup, run.checked(), scorer))
            simuleval_log.write(folder, [trace.instance(scorer.unit) for trace in run.traces])
            click.echo(fitted(_line(results[-1]), sys.stdout, 4))
            if number < len(setups):
                sparing()
    finally:  # also of a sweep that ends before its time
        if results:
            sparing(must=True)
    if not results:
        raise nothing_heard(run.failures)
    tell(f"report: {output / 'report.html'}")


def _line(result: SystemResult) -> str:
    """The numbers first: below one another, however long the names of the systems are."""

    def show(metric: str, scale: float, digits: int) -> str:
        value = result.scores.get(metric)
        return UNDEFINED if value is None else f"{value / scale:z.{digits}f}"

    return (
        f"BLEU {show('BLEU', 1, 1):>5}  LAAL {show('LAAL', 1000, 2):>5} s  "
        f"LAAL_CA {show('LAAL_CA', 1000, 2):>5} s  RTF {show('RTF', 1, 2)}  {result.name}"
    )
