"""The options that choose clips of a corpus, shared by the commands that measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.ranges import COUNT, JOBS
from dragoman.cli.setup_options import grouped

if TYPE_CHECKING:
    from dragoman.corpora import Clip
    from dragoman.evaluate.run import Failure
    from dragoman.setup import Setup

_corpus = grouped("Corpus")
_FILE = click.Path(path_type=Path)


def corpus_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--references`, `--limit`, `--jobs` and `--together`."""
    options = (
        _corpus("--references", type=_FILE, help="CORPUS lists audio; texts are here."),
        _corpus("--limit", type=COUNT, metavar="N", help="Only the first N clips."),
        _corpus(
            "--jobs",
            type=JOBS,
            default=1,
            show_default=True,
            metavar="N",
            help="Processes, a model each.",
        ),
        _corpus(
            "--together",
            type=COUNT,
            default=1,
            show_default=True,
            metavar="N",
            help="Clips that a process interprets side by side: for a model on a GPU.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def read_first(
    corpus: Path, setup: Setup, references: Path | None, limit: int | None
) -> list[Clip]:
    """The clips of a corpus that the options choose."""
    from dragoman.corpora import read_corpus

    return read_corpus(corpus, setup.source or "", setup.target, references)[:limit]


def tell_failures(failures: Iterable[Failure]) -> None:
    """Name the clips that could not be interpreted, on standard error."""
    for failure in failures:
        click.echo(f"left out: {failure}", err=True)
