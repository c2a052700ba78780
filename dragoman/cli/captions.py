"""Caption files that a command may write: the translation, the speaker's own words, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.outputs import check_suffix
from dragoman.cli.setup_options import grouped
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.listeners import Listener
    from dragoman.setup import Setup

_FILE = click.Path(path_type=Path)
_output = grouped("Output")


def caption_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `captions`, `captions_source`, `captions_both` and `resume`."""
    for option in (
        _output("--resume", is_flag=True, help="Go on with captions where a crash cut them off."),
        _output("--captions-both", type=_FILE, metavar="FILE", help="Both languages, a line each."),
        _output("--captions-source", type=_FILE, metavar="FILE",
                help="The same in the speaker's language."),
        _output("--captions", type=_FILE, multiple=True, metavar="FILE",
                help="Write a .srt or .vtt file."),
    ):  # fmt: skip
        command = option(command)
    return command


def check_captions(
    captions: tuple[Path, ...],
    captions_source: Path | None,
    captions_both: Path | None,
    resume: bool,
    others: dict[str, Path | None],
) -> None:
    """Refuse files of another kind, and `--resume` without any, or with `others`: of these there
    would be the rest of the talk in the place of the whole."""
    from dragoman.text.caption_files import SUFFIXES

    named: list[tuple[str, Path | None]] = [("--captions", path) for path in captions]
    named += [("--captions-source", captions_source), ("--captions-both", captions_both)]
    for option, path in named:
        check_suffix(option, path, SUFFIXES)
    if resume and not any(path for _, path in named):
        raise DragomanError("--resume goes on with captions: name their file by --captions FILE.")
    if resume and (named_too := [option for option, path in others.items() if path]):
        raise DragomanError(
            f"--resume goes on with captions alone, and {named_too[0]} would hold nothing but the "
            "rest of the talk; leave out one of them."
        )


def caption_files(
    setup: Setup,
    captions: tuple[Path, ...],
    captions_source: Path | None,
    captions_both: Path | None,
    resume: bool,
    offset: float | None = None,
) -> Iterator[AbstractContextManager[Listener]]:
    """A listener for each file, of a recording that is heard from `offset` seconds on."""
    from dragoman import listeners

    spoken = setup.source or "en"  # not known yet: only the width of a line depends on it
    for path in captions:
        yield listeners.captions(path, setup.target, resume=resume, offset=offset)
    if captions_source is not None:
        yield listeners.source_captions(captions_source, spoken, resume=resume, offset=offset)
    if captions_both is not None:
        yield listeners.captions(
            captions_both, setup.target, source=spoken, resume=resume, offset=offset
        )


LEAD = 0.3
"""Seconds that are heard of the sentence before: where a word begins is known no better."""


@dataclass(frozen=True, slots=True)
class GoingOn:
    """Where to go on with captions that break off: with their last sentence, which is made anew.

    The recording is heard from `start` on; what may be heard there of the sentence before is its
    last word.
    """

    path: Path
    start: float
    words: tuple[str, ...] = ()

    def sentence(self) -> str:
        minutes, seconds = divmod(int(self.start), 60)
        return f"Going on at {minutes}:{seconds:02}, with the last sentence of {self.path}."


def going_on(
    captions: Sequence[Path], others: Sequence[Path | None], language: str
) -> GoingOn | None:
    """Where to go on with the first of these files that has captions; None if none has.

    `others` hold words that are not the translation's.
    """
    from dragoman.text.caption_files import read_captions
    from dragoman.text.sentences import ends_sentence
    from dragoman.text.words import split_words

    for path in [*captions, *filter(None, others)]:
        cues = read_captions(path).cues
        for cue, following in reversed(list(pairwise(cues))):
            words = split_words(" ".join(cue.lines), language)
            if ends_sentence(words[-1]):
                said = tuple(words[-1:]) if path in captions else ()
                return GoingOn(path, following.start - LEAD, said)
        if cues:
            return GoingOn(path, 0.0)
    return None
