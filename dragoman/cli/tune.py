"""`dragoman tune`: the best policy for a language and a latency budget, as a setup file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dragoman.cli.app import GroupedCommand
from dragoman.cli.setup_options import grouped, milliseconds, read_setup, setup_options

_corpus = grouped("Corpus")
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
@click.argument("corpus", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path), default="dragoman.yaml")
@setup_options
@_tune("--aware", is_flag=True, help="The budget includes computation on this machine.")
@_tune("--policies", multiple=True, metavar="SPEC", help="Candidates, e.g. alignatt:last=300|600.")
@_tune("--steps", default="500ms,1s", show_default=True, metavar="TIMES", help="Steps to try.")
@_tune("--runs", type=Path, metavar="DIR", help="Keep the runs, to go on after an interruption.")
@_corpus("--references", type=Path, metavar="FILE", help="CORPUS lists audio; texts are here.")
@_corpus("--limit", type=int, metavar="N", help="Only the first N clips.")
@_corpus("--jobs", type=int, default=1, show_default=True, help="Processes, a model in each.")
def command(
    corpus: Path,
    output: Path,
    aware: bool,
    policies: tuple[str, ...],
    steps: str,
    runs: Path | None,
    references: Path | None,
    limit: int | None,
    jobs: int,
    max_latency: str | None,
    **options: Any,
) -> None:
    """Find the best policy on CORPUS within --max-latency (2s); write it to OUTPUT.

    OUTPUT (dragoman.yaml by default) is a setup for --setup of the other commands. Candidates that
    do badly on a few clips are dropped early.
    """
    import tempfile

    from dragoman.corpora import read_corpus
    from dragoman.evaluate.grid import grid
    from dragoman.evaluate.result import Scorer
    from dragoman.evaluate.tune import Trial, tune
    from dragoman.setup import System
    from dragoman.text.languages import find_language

    base = read_setup(**options)
    budget_ms = milliseconds(max_latency or "2s")
    clips = read_corpus(corpus, base.source or "", base.target, references)[:limit]
    candidates = grid(base, policies or CANDIDATES, [milliseconds(s) for s in steps.split(",")])

    def on_trial(trial: Trial, done: int, total: int) -> None:
        click.echo(f"{trial.clips:4} clips  {done:3}/{total}  {_line(trial)}", err=True)

    with tempfile.TemporaryDirectory(prefix="dragoman-") as scratch:
        tuned = tune(
            *(clips, candidates, budget_ms, runs or Path(scratch)),
            Scorer(find_language(base.target).unit).values,
            latency="LAAL_CA" if aware else "LAAL",
            jobs=jobs,
            system=System(base) if jobs <= 1 else None,
            on_trial=on_trial,
        )
    tuned.best.setup.write(output)
    click.echo(f"best: {_line(tuned.best)}")
    click.echo(f"written to {output}; use it with: dragoman live --setup {output}")


def _line(trial: Any) -> str:
    return (
        f"{trial.setup.policy:34} {trial.setup.step_ms:5.0f} ms steps  "
        f"BLEU {trial.quality:5.1f}  latency {trial.latency_ms / 1000:5.2f} s"
    )
