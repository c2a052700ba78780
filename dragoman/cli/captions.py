"""Caption files that a command may write: the translation, the speaker's own words, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.cli.app import grouped
from dragoman.cli.outputs import check_suffix
from dragoman.cli.ranges import OUTPUT
from dragoman.errors import DragomanError
from dragoman.text.moments import shown_moment

if TYPE_CHECKING:
    from dragoman.cli.sound import Part
    from dragoman.listeners import Listener
    from dragoman.setup import Setup

_output = grouped("Output")


def caption_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `CaptionFiles`, which it gets as its argument `captions`."""

    @wraps(command)
    def with_captions(
        captions: tuple[Path, ...],
        captions_source: Path | None,
        captions_both: Path | None,
        resume: bool,
        **values: Any,
    ) -> Any:
        files = CaptionFiles(captions, captions_source, captions_both, resume)
        return command(captions=files, **values)

    decorated: Callable[..., Any] = with_captions
    for option in (
        _output("--resume", is_flag=True, help="Go on with captions where a crash cut them off."),
        _output("--captions-both", type=OUTPUT, metavar="FILE",
                help="Both languages, a line each."),
        _output("--captions-source", type=OUTPUT, metavar="FILE",
                help="The same in the speaker's language."),
        _output("--captions", type=OUTPUT, multiple=True, metavar="FILE",
                help="Write a .srt or .vtt file."),
    ):  # fmt: skip
        decorated = option(decorated)
    return decorated


@dataclass(frozen=True, slots=True)
class GoingOn:
    """Where to go on with captions that break off: with a last sentence, which is made anew.

    The recording is heard from `start` on; what may be heard there of the sentence before is its
    last word.
    """

    path: Path
    start: float
    words: tuple[str, ...] = ()

    def in_pause(self, file: str, part: Part) -> GoingOn:
        """The same, begun in the pause before the sentence: its first word is whole."""
        from dragoman.audio.pause import pause_near

        if not self.start:
            return self
        return replace(self, start=pause_near(file, self.start, part.raw, part.track, part.channel))

    def sentence(self) -> str:
        if not self.start:
            return f"Beginning anew: {self.path} tells of no later sentence when it was spoken."
        return f"Going on at {shown_moment(self.start)}, with the last sentence of {self.path}."


@dataclass(frozen=True, slots=True)
class CaptionFiles:
    """The files that the options name, and whether they are gone on with."""

    translation: tuple[Path, ...]
    source: Path | None
    both: Path | None
    resume: bool

    @property
    def paths(self) -> list[Path]:
        return [*self.translation, *filter(None, (self.source, self.both))]

    @property
    def need_transcript(self) -> bool:
        """Whether what the speaker says is written."""
        return self.source is not None or self.both is not None

    def check(self, others: dict[str, Path | None]) -> None:
        """Refuse files of another kind, and `--resume` without any, or with `others`: of these
        there would be the rest of the talk in the place of the whole."""
        from dragoman.text.caption_files import SUFFIXES

        for path in self.translation:
            check_suffix("--captions", path, SUFFIXES)
        check_suffix("--captions-source", self.source, SUFFIXES)
        check_suffix("--captions-both", self.both, SUFFIXES)
        if not self.resume:
            return
        if not self.paths:
            raise DragomanError(
                "--resume goes on with captions: name their file by --captions FILE."
            )
        if named_too := [option for option, path in others.items() if path]:
            raise DragomanError(
                f"--resume goes on with captions alone, and {named_too[0]} would hold nothing but "
                "the rest of the talk; leave out one of them."
            )

    def listeners(
        self, setup: Setup, offset: float | None = None
    ) -> Iterator[AbstractContextManager[Listener]]:
        """A listener for each file, of a recording that is heard from `offset` seconds on."""
        from dragoman.listeners import captions, source_captions

        spoken = setup.source or "en"  # until it is heard which it is
        resume = self.resume
        for path in self.translation:
            yield captions(path, setup.target, resume=resume, offset=offset)
        if self.source is not None:
            yield source_captions(self.source, spoken, resume=resume, offset=offset)
        if self.both is not None:
            yield captions(self.both, setup.target, source=spoken, resume=resume, offset=offset)

    def found(self, file: str, language: str, part: Part) -> GoingOn | None:
        """Where to go on with a recording's captions; None: where nobody has said `--resume`, or
        it is a pipe, or there are none yet."""
        from dragoman.audio.source import is_pipe

        if not self.resume or is_pipe(file):
            return None
        before = self.going_on(language)
        return None if before is None else before.in_pause(file, part)

    def going_on(self, language: str) -> GoingOn | None:
        """Where to go on with all files: where the last sentence begins of the one that breaks off
        first; None if there are no captions yet.

        `language` is that of the translation, whose words alone are recalled.
        """
        from dragoman.text.caption_files import read_captions
        from dragoman.text.going_on import in_time, last_sentence

        found: list[GoingOn] = []
        kept = {path: read_captions(path).cues for path in self.paths}
        for path, cues in kept.items():
            place = last_sentence(cues, language, both=path == self.both)
            words = place.words if path in self.translation else ()
            found.append(GoingOn(path, place.moment, words))
        if not any(kept.values()):
            return None
        first = min(found, key=lambda one: one.start)
        while True:
            start = min(in_time(c, first.start, both=p == self.both) for p, c in kept.items())
            if start == first.start:
                return first
            first = GoingOn(first.path, start)
