"""`dragoman tune`: the best policy for a language and a latency budget, as a setup file."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.corpus_options import (
    chosen_workers,
    corpus_options,
    followed,
    read_first,
    tell_failures,
    without_reference,
)
from dragoman.cli.notes import told_if_stopped, warned_once
from dragoman.cli.outputs import check_folder, check_outputs, check_standard_output
from dragoman.cli.ranges import PATH, POLICY_SPECS, STEPS, Time
from dragoman.cli.setup_options import read_setup, shared_setup_options
from dragoman.cli.wrap import fitted
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.evaluate.tune import Trial

_tune = grouped("Tuning")

# What may win: policies that look before they speak. Greedy and wait-k lose everywhere.
CANDIDATES = (
    "local-agreement:n=2|3",
    "agreeatt:old=500|1000|1500,alone=2000|3000,sure=0.7|0.9",
    "alignatt:last=300|500|1000|1500",
    "edatt:alpha=0.2|0.1,last=500|1000",
    "consensus:alpha=0.5|0.75|0.9",
    "confidence:gamma=0.5|0.7|0.9,measure=tokens",
)


@click.command(cls=GroupedCommand)
@click.argument("corpus", type=PATH)
@click.argument("output", type=PATH, default="dragoman.yaml")
@shared_setup_options
@_tune("--max-latency", type=Time(), default="2s", metavar="TIME",
       help="How far behind the speaker the words may be.")  # fmt: skip
@_tune("--aware", is_flag=True, help="The budget includes computation on this machine.")
@_tune(
    "--policies",
    type=POLICY_SPECS,
    multiple=True,
    metavar="SPEC",
    help="Candidates, such as 'alignatt:last=300|600'; repeat it for others.",
)
@_tune("--steps", type=STEPS, default="500ms,1s", help="Steps to try.")
@_tune("--runs", type=PATH, metavar="DIR", help="Keep the runs, to go on after an interruption.")
@corpus_options
def command(
    corpus: Path,
    output: Path,
    max_latency: float,
    aware: bool,
    policies: tuple[str, ...],
    steps: list[float],
    runs: Path | None,
    references: tuple[Path, ...],
    limit: int | None,
    jobs: int,
    cluster: str | None,
    together: int,
    **options: Any,
) -> None:
    """Find the best policy on CORPUS within --max-latency; write it to OUTPUT.

    OUTPUT (dragoman.yaml by default) is a setup for --setup of the other commands. Candidates that
    do badly on a few clips are dropped early.

    \b
    dragoman tune corpus.tsv best.yaml --from de --max-latency 1.5s
    dragoman translate talk.mp3 --setup best.yaml
    """
    from dragoman.cli.progress import clip_progress
    from dragoman.evaluate.grid import grid
    from dragoman.evaluate.result import Scorer
    from dragoman.evaluate.tune import tune
    from dragoman.setup import System

    click.get_current_context().with_resource(warned_once())
    base = read_setup(**options)
    scorer = Scorer.of(base.target)
    candidates = grid(base, policies or CANDIDATES, steps)
    clips = read_first(corpus, base, references, limit)
    if without_reference(clips, base.target) == len(clips):
        raise DragomanError(
            f"{corpus} has no text in '{base.target}' for any of its clips: nothing tells which "
            "policy translates best."
        )
    check_outputs([corpus, *references, options["setup"]], [output])
    check_standard_output()

    def on_trial(trial: Trial, done: int, total: int) -> None:
        clips = "clip " if trial.clips == 1 else "clips"
        line = f"{trial.clips:4} {clips}  {done:3}/{total}  {_line(trial)}"
        print(fitted(line, sys.stderr, 4), file=sys.stderr)  # a bar lets this pass, but not click

    workers, system = chosen_workers(jobs, cluster, base), System(base)
    with TemporaryDirectory(prefix="dragoman-") as scratch:
        folder = runs or Path(scratch)
        check_folder(folder)
        if cluster is None:
            mine = System(base) if workers else system
            candidates = followed(candidates, bool(policies), clips, mine)
            del mine  # the processes have models of their own
        with told_if_stopped("" if runs else "--runs DIR"), clip_progress(corpus.name) as on_clip:
            tuned = tune(
                *(clips, candidates, max_latency, folder, scorer.values),
                latency="LAAL_CA" if aware else "LAAL",
                workers=workers,
                together=together,
                system=None if workers else system,
                on_trial=on_trial,
                on_clip=on_clip,
                on_failure=lambda failure, setup: tell_failures([failure], setup),
            )
    tuned.best.setup.write(output)
    click.echo(fitted(f"best: {_line(tuned.best)}", sys.stdout, 4))
    click.echo(f"written to {output}; use it with: dragoman live --setup {output}")


def _line(trial: Trial) -> str:
    from dragoman.evaluate.result import system_name

    return (
        f"BLEU {trial.quality:5.1f}  latency {trial.latency_ms / 1000:z5.2f} s  "
        f"{system_name(trial.setup)}"
    )
