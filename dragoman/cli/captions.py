"""Caption files that a command may write: the translation, the speaker's own words, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.setup_options import grouped

if TYPE_CHECKING:
    from dragoman.audio.chunk import Chunk
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


@dataclass(frozen=True, slots=True)
class GoingOn:
    """Where the captions of a recording break off: it is heard from `start` on once more, and of
    the sound up to `until` these words were said."""

    path: Path
    start: float
    until: float
    words: tuple[str, ...]

    def sentence(self) -> str:
        minutes, seconds = divmod(int(self.start), 60)
        return f"Going on at {minutes}:{seconds:02}, where {self.path} breaks off."

    def chunks(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The sound that was captioned before as one chunk, then the others."""
        import numpy as np

        heard, pieces = 0.0, []
        for chunk in chunks:
            heard += chunk.seconds
            pieces.append(chunk.samples)
            if chunk.last or heard >= self.until - self.start:
                yield replace(chunk, samples=np.concatenate(pieces))
                break
        yield from chunks


def going_on(
    captions: Sequence[Path], others: Sequence[Path | None], language: str
) -> GoingOn | None:
    """Where the first of these files that has captions breaks off; None if none has.

    `others` hold words that are not the translation's, so they are gone on with at their end.
    """
    from dragoman.text.caption_files import read_captions
    from dragoman.text.words import split_words

    for path in captions:
        if cues := read_captions(path).cues:
            text = " ".join(line for cue in cues for line in cue.lines)
            return GoingOn(path, cues[0].start, cues[-1].end, tuple(split_words(text, language)))
    for path in filter(None, others):
        if end := read_captions(path).end:
            return GoingOn(path, end, end, ())
    return None
