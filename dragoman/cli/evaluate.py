"""`dragoman evaluate`: interpret a corpus and score it."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from dragoman.cli.app import GroupedCommand
from dragoman.cli.setup_options import grouped, read_setup, setup_options

_corpus = grouped("Corpus")
_output = grouped("Output")


@click.command(cls=GroupedCommand)
@click.argument("corpus", type=click.Path(path_type=Path))
@setup_options
@_corpus("--references", type=Path, metavar="FILE", help="CORPUS lists audio; texts are here.")
@_corpus("--limit", type=int, metavar="N", help="Only the first N clips.")
@_corpus("--jobs", type=int, default=1, show_default=True, help="Processes, a model in each.")
@_output("--unit", type=click.Choice(["word", "char"]), help="Default: by the target language.")
@_output("--output", type=Path, metavar="DIR", help="Keep traces and a SimulEval log; resume.")
@_output("--json", "as_json", is_flag=True, help="The same object as 'dragoman score --json'.")
def command(
    corpus: Path,
    references: Path | None,
    limit: int | None,
    jobs: int,
    unit: Any,
    output: Path | None,
    as_json: bool,
    **system: Any,
) -> None:
    """Interpret every clip of CORPUS as if it were spoken now, and score what was said.

    CORPUS is a TSV (columns audio, optional start and end, one per language code), JSONL, a CoVoST
    TSV, a MuST-C or Europarl-ST folder, or a list of audio files with --references.
    """
    from dragoman.cli.progress import clip_progress
    from dragoman.cli.report import show
    from dragoman.corpora import read_corpus
    from dragoman.evaluate.run import TRACES, run_corpus
    from dragoman.metrics import simuleval_log
    from dragoman.metrics.lines import Log
    from dragoman.metrics.score import score_corpus
    from dragoman.metrics.timings import Rules
    from dragoman.text.languages import find_language

    setup = read_setup(**system)
    clips = read_corpus(corpus, setup.source or "", setup.target, references)[:limit]
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-"))
        folder = output or Path(scratch)
        on_clip = stack.enter_context(clip_progress(corpus.name))
        run = run_corpus(clips, setup, folder, jobs=jobs, on_clip=on_clip)
    unit = unit or find_language(setup.target).unit
    log = Log(
        folder / TRACES if output else corpus,
        f"{setup.model}, {setup.policy}, {setup.step_ms:g} ms steps",
        [trace.instance(unit) for trace in run.traces],
        left_out=[f"clip {failure.index}: {failure.reason}" for failure in run.failures],
    )
    if output is not None:
        simuleval_log.write(output, log.instances)
    show(log, score_corpus(log.instances, Rules(unit=unit)), as_json)
