"""`dragoman evaluate`: interpret a corpus and score it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.corpus_options import chosen_workers, corpus_options, read_first
from dragoman.cli.notes import tell, told_if_stopped, warned_once
from dragoman.cli.outputs import check_folder, check_standard_output
from dragoman.cli.ranges import PATH
from dragoman.cli.setup_options import read_system, setup_options
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.corpora import Clip

_output = grouped("Output")


@click.command(cls=GroupedCommand)
@click.argument("corpus", type=PATH)
@setup_options
@corpus_options
@_output(
    "--unit",
    type=click.Choice(["word", "char"]),
    help="What is counted (default: by the language).",
)
@_output(
    "--comet",
    metavar="NET",
    help="Compute COMET, too, by this net: a folder, or its name on the model hub if it has been "
    "fetched. CORPUS must have what was spoken; needs torch.",
)
@_output("--output", type=PATH, metavar="DIR", help="Keep traces and a SimulEval log; go on there.")
@_output("--json", "as_json", is_flag=True, help="The same object as 'dragoman score --json'.")
def command(
    corpus: Path,
    references: tuple[Path, ...],
    limit: int | None,
    jobs: int,
    cluster: str | None,
    together: int,
    unit: Any,
    comet: str | None,
    output: Path | None,
    as_json: bool,
    **system: Any,
) -> None:
    """Interpret every clip of CORPUS as if it were spoken now, and score what was said.

    CORPUS is a TSV (columns audio, optional start and end, one per language code), JSONL, a CoVoST
    TSV, a MuST-C or Europarl-ST folder, a lhotse manifest (cuts.jsonl.gz), or a list of audio files
    with --references.

    \b
    dragoman evaluate corpus.tsv --from de --to en
    dragoman evaluate corpus.tsv --from de --policy wait-k:k=3 --output wait-3
    """
    from dragoman.cli.comet import add_comet, load_comet
    from dragoman.cli.progress import clip_progress
    from dragoman.cli.report import show
    from dragoman.evaluate.result import Scorer, system_words
    from dragoman.evaluate.run import TRACES, run_corpus
    from dragoman.metrics import simuleval_log
    from dragoman.metrics.lines import Log

    click.get_current_context().with_resource(warned_once())
    setup = read_system(tell, **system).setup
    scorer = Scorer.of(setup.target, unit)
    clips = read_first(corpus, setup, references, limit)
    spoken = _spoken(clips, setup.source, corpus) if comet else {}
    net = load_comet(comet) if comet else None  # before hours of work, if it cannot be read
    workers = chosen_workers(jobs, cluster, setup)
    with ExitStack() as stack:
        folder = output or Path(stack.enter_context(TemporaryDirectory(prefix="dragoman-")))
        check_folder(folder)
        check_standard_output()
        stack.enter_context(told_if_stopped("" if output else "--output DIR"))
        on_clip = stack.enter_context(clip_progress(corpus.name))
        run = run_corpus(
            clips, setup, folder, workers=workers, together=together, on_clip=on_clip
        ).checked()
    report = scorer.report(run.traces)
    if net is not None:
        report = add_comet(report, net, [spoken[i.index] for i in report.instances])
    log = Log(
        folder / TRACES if output else corpus,
        f"{setup.model}, {setup.policy}{system_words(setup)}, {setup.step_ms:g} ms steps",
        list(report.instances),
        left_out=[str(failure) for failure in run.failures],
    )
    if output is not None:
        simuleval_log.write(output, log.instances)
    show(log, report, as_json)


def _spoken(clips: list[Clip], source: str | None, corpus: Path) -> dict[int, str]:
    """What is spoken in the clips, in writing."""
    spoken = {clip.index: clip.texts[source] for clip in clips if source and source in clip.texts}
    if len(spoken) < len(clips):
        raise DragomanError(
            f"--comet compares with what was spoken, too: {corpus} must have a text in the spoken "
            "language for every clip, and --from must name that language."
        )
    return spoken
