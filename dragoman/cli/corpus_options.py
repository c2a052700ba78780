"""The options that choose clips of a corpus, shared by the commands that measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.app import grouped
from dragoman.cli.notes import tell
from dragoman.cli.ranges import COUNT, JOBS, PATH
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.corpora import Clip
    from dragoman.evaluate.run import Failure
    from dragoman.setup import Setup, System
    from dragoman.train.data.pack import Header
    from dragoman.workers import Workers

_corpus = grouped("Corpus")
TABLES = (".tsv", ".jsonl", ".json", ".yaml", ".yml")
"""What a corpus is called that is no list of audio files."""


def corpus_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--references`, `--limit`, `--jobs`, `--cluster` and `--together`."""
    options = (
        _corpus(
            "--references",
            type=PATH,
            multiple=True,
            help="Texts for a CORPUS that lists audio; repeat it for further references.",
        ),
        _corpus("--limit", type=COUNT, metavar="N", help="Only the first N clips."),
        _corpus("--jobs", type=JOBS, default=1, metavar="N", help="Processes, each with a model."),
        cluster_option("Corpus"),
        _corpus(
            "--together",
            type=COUNT,
            default=1,
            metavar="N",
            help="Clips that a process interprets side by side: for a model on a GPU.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


_SPREAD = "Spread the work over the machines of a Ray cluster (docs/cluster.md)."


def cluster_option(
    group: str, text: str = _SPREAD
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--cluster`, with or without an address."""
    return grouped(group)(
        "--cluster",
        is_flag=False,
        flag_value="local",
        metavar="[HOST:PORT]",
        help=text,
    )


def chosen_workers(jobs: int, cluster: str | None, setup: Setup) -> Workers | None:
    """Who interprets; None: this process does."""
    from dragoman.cluster import Cluster
    from dragoman.workers import WarmProcesses

    if cluster is None:
        return WarmProcesses(jobs) if jobs > 1 else None
    check_one_way(jobs > 1, cluster)
    return Cluster(cluster, gpu=setup.device == "cuda")


def check_one_way(jobs: bool, cluster: str | None) -> None:
    if jobs and cluster is not None:
        raise DragomanError(
            "--jobs starts processes here, --cluster has its own; give one of them."
        )


def read_first(
    corpus: Path, setup: Setup, references: Sequence[Path], limit: int | None
) -> list[Clip]:
    """The clips of a corpus that the options choose; a language that is foreign to it is told."""
    from dragoman.corpora import read_corpus
    from dragoman.train.data.cuts import is_manifest

    if references and (corpus.is_dir() or corpus.suffix in TABLES or is_manifest(corpus)):
        raise DragomanError(
            f"--references go with a list of audio files, and {corpus} has texts itself: there, "
            f"further references are columns '{setup.target}.2', '{setup.target}.3', or files "
            "beside the first (docs/metrics.md)."
        )
    if is_manifest(corpus):
        clips = _read_manifest(corpus, setup, limit)
    else:
        clips = read_corpus(corpus, setup.source or "", setup.target, references, limit)
    known = {code for clip in clips for code in clip.texts}
    if setup.source and setup.source not in known and known != {setup.target}:
        tell(
            f"{corpus} has texts in {', '.join(sorted(known))}, and none in '{setup.source}': "
            "is that what is spoken in it (--from)?"
        )
    return clips


def without_reference(clips: Sequence[Clip], target: str) -> int:
    """Of how many clips nobody has written down what should be said."""
    return sum(not clip.texts.get(target, "").strip() for clip in clips)


def _read_manifest(path: Path, setup: Setup, limit: int | None) -> list[Clip]:
    """The clips of a manifest of lhotse's; those that the limit leaves out may be as they like."""
    from dragoman.corpora import with_audio
    from dragoman.train.data.cuts import read_cuts

    clips = list(islice(read_cuts(path, setup.source or ""), limit))
    if not clips:
        raise DragomanError(f"The corpus {path} is empty.")
    for clip in clips:
        if setup.target not in clip.texts:
            raise DragomanError(
                f"What is said in {path} as number {clip.index + 1} has no text in "
                f"'{setup.target}': a supervision has translations under 'custom', by language."
            )
    return with_audio(clips, path)


def followed(
    setups: Sequence[Setup], chosen: bool, clips: Sequence[Clip], system: System
) -> list[Setup]:
    """The setups that the model can follow. What it cannot is said before anything is run: it is
    left out, or refused where somebody has `chosen` it."""
    from dragoman.evaluate.grid import fitting

    told = fitting(system, setups, clips[0].audio.name)
    fit = [setup for setup, why in told.items() if not why]
    if len(fit) < len(told) and (chosen or not fit):
        raise DragomanError(next(filter(None, told.values())))
    for policy, why in {setup.policy: why for setup, why in told.items() if why}.items():
        tell(f"left out: {policy}: {why}")
    return fit


def tell_pack(out: Path, header: Header) -> None:
    """What a folder to train on has, and what it has not."""
    from dragoman.train.data.faults import FAULTS, read_faults, summary_of

    click.echo(f"{out}: {header.items} utterances, {header.hours:.2f} hours of speech.")
    if faults := read_faults(out / FAULTS):
        click.echo(f"Left out: {summary_of(faults)}; {out / FAULTS} lists them.")


def tell_failures(failures: Iterable[Failure], setup: Setup | None = None) -> None:
    """Name the clips that could not be interpreted, on standard error; with the setup where it is
    at fault."""
    for failure in failures:
        tell_left_out(failure, setup if failure.own else None)


def tell_left_out(what: object, setup: Setup | None = None) -> None:
    """Say what is not measured, and why."""
    from dragoman.evaluate.result import system_name

    system = "" if setup is None else f"{system_name(setup)}: "
    tell(f"left out: {system}{what}")
