"""`dragoman sweep`: many policies over one corpus, compared in a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dragoman.cli.app import GroupedCommand
from dragoman.cli.setup_options import grouped, milliseconds, read_setup, setup_options

_corpus = grouped("Corpus")
_sweep = grouped("Sweep")


@click.command(cls=GroupedCommand)
@click.argument("corpus", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@setup_options
@_sweep("--policies", multiple=True, metavar="SPEC", help="Such as wait-k:k=1|3|5; repeatable.")
@_sweep("--steps", default="1s", show_default=True, metavar="TIMES", help="Such as 500ms,1s,2s.")
@_corpus("--references", type=Path, metavar="FILE", help="CORPUS lists audio; texts are here.")
@_corpus("--limit", type=int, metavar="N", help="Only the first N clips.")
@_corpus("--jobs", type=int, default=1, show_default=True, help="Processes, a model in each.")
def command(
    corpus: Path,
    output: Path,
    policies: tuple[str, ...],
    steps: str,
    references: Path | None,
    limit: int | None,
    jobs: int,
    **options: Any,
) -> None:
    """Interpret CORPUS with every policy and step; write runs, scores and a report to OUTPUT.

    Without --policies, every policy is tried over its usual range. A sweep that was interrupted
    goes on where it stopped.
    """
    from dragoman.cli.progress import clip_progress
    from dragoman.corpora import read_corpus
    from dragoman.evaluate.grid import STANDARD, grid, slug
    from dragoman.evaluate.report import write_report, write_scores
    from dragoman.evaluate.result import Scorer, system_result
    from dragoman.evaluate.run import run_corpus
    from dragoman.setup import System
    from dragoman.text.languages import find_language

    base = read_setup(**options)
    setups = grid(base, policies or STANDARD, [milliseconds(step) for step in steps.split(",")])
    clips = read_corpus(corpus, base.source or "", base.target, references)[:limit]
    system, scorer = System(base), Scorer(find_language(base.target).unit)
    results = []
    title = f"{base.source or 'any language'} to {base.target}: {corpus.name}"
    for number, setup in enumerate(setups, start=1):
        name = f"{number}/{len(setups)} {setup.policy}"
        with clip_progress(name) as on_clip:
            own = System(setup, system.model) if jobs <= 1 else None
            folder = output / slug(setup)
            run = run_corpus(clips, setup, folder, jobs=jobs, system=own, on_clip=on_clip)
        results.append(system_result(setup, run, scorer))
        _say(results[-1].name, results[-1].scores)
        lead = f"{base.model}, {len(clips)} clips, {len(results)} of {len(setups)} systems"
        write_report(output / "report.html", title, lead, results)
        write_scores(output / "scores.tsv", results)
    click.echo(f"report: {output / 'report.html'}", err=True)


def _say(name: str, scores: Any) -> None:
    def show(metric: str, scale: float, digits: int) -> str:
        value = scores.get(metric)
        return "undefined" if value is None else f"{value / scale:.{digits}f}"

    click.echo(
        f"{name:40} BLEU {show('BLEU', 1, 1):>5}  AL {show('AL', 1000, 2):>6} s  "
        f"LAAL {show('LAAL', 1000, 2):>6} s  LAAL_CA {show('LAAL_CA', 1000, 2):>6} s  "
        f"RTF {show('RTF', 1, 2)}"
    )
