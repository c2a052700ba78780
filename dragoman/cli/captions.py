"""Caption files that a command may write: the translation, the speaker's own words, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.setup_options import grouped

if TYPE_CHECKING:
    from dragoman.listeners import Listener
    from dragoman.setup import Setup

_FILE = click.Path(path_type=Path)
_output = grouped("Output")


def caption_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `captions`, `captions_source`, `captions_both` and `resume`."""
    for option in (
        _output("--resume", is_flag=True, help="Go on with captions that a crash cut off."),
        _output("--captions-both", type=_FILE, metavar="FILE", help="Both languages, a line each."),
        _output("--captions-source", type=_FILE, metavar="FILE",
                help="The same in the speaker's language."),
        _output("--captions", type=_FILE, multiple=True, metavar="FILE",
                help="Write a .srt or .vtt file."),
    ):  # fmt: skip
        command = option(command)
    return command


def caption_files(
    setup: Setup,
    captions: tuple[Path, ...],
    captions_source: Path | None,
    captions_both: Path | None,
    resume: bool,
) -> Iterator[AbstractContextManager[Listener]]:
    """A listener for each file."""
    from dragoman import listeners

    spoken = setup.source or "en"  # not known yet: only the width of a line depends on it
    for path in captions:
        yield listeners.captions(path, setup.target, resume=resume)
    if captions_source is not None:
        yield listeners.source_captions(captions_source, spoken, resume=resume)
    if captions_both is not None:
        yield listeners.captions(captions_both, setup.target, source=spoken, resume=resume)
