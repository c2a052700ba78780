"""The options that ask for captions, shared by `translate` and `live`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dragoman.cli.setup_options import grouped
from dragoman.errors import DragomanError
from dragoman.listeners import Listener
from dragoman.setup import Setup

_output = grouped("Output")
_FILE = click.Path(path_type=Path)


def caption_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets `captions`, a `Captions`."""
    options = (
        _output("--captions", type=_FILE, multiple=True, metavar="FILE",
                help="Write a .srt or .vtt file."),
        _output("--captions-source", type=_FILE, multiple=True, metavar="FILE",
                help="The same with the speaker's own words."),
        _output("--captions-both", type=_FILE, multiple=True, metavar="FILE",
                help="The same with both languages."),
        _output("--resume", is_flag=True, help="Go on with captions that a crash cut off."),
    )  # fmt: skip

    def gathered(
        captions: tuple[Path, ...],
        captions_source: tuple[Path, ...],
        captions_both: tuple[Path, ...],
        resume: bool,
        **others: Any,
    ) -> Any:
        wanted = Captions(captions, captions_source, captions_both, resume)
        return command(captions=wanted, **others)

    gathered.__doc__ = command.__doc__
    gathered.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(options):
        option(gathered)
    return gathered


@dataclass(frozen=True, slots=True)
class Captions:
    """The files that are wanted."""

    translation: tuple[Path, ...]
    source: tuple[Path, ...]
    both: tuple[Path, ...]
    resume: bool

    @property
    def files(self) -> tuple[Path, ...]:
        return self.translation + self.source + self.both

    @property
    def need_source(self) -> bool:
        return bool(self.source or self.both)

    def opened(self, stack: ExitStack, setup: Setup, start: float = 0.0) -> list[Listener]:
        """Writers of all of them; `start` is where in the recording one begins to hear."""
        from dragoman import listeners

        if self.resume and not self.files:
            raise DragomanError("--resume goes on with captions; name them with --captions FILE.")
        if self.need_source and setup.source is None:
            raise DragomanError("Captions of the speaker's words need his language: --from CODE.")
        resumed = listeners.Resumed(start or None) if self.resume else None
        source, target = setup.source or "", setup.target
        wanted = [
            *(listeners.captions(path, target, resumed) for path in self.translation),
            *(listeners.source_captions(path, source, resumed) for path in self.source),
            *(listeners.captions(path, target, resumed, source) for path in self.both),
        ]
        return [stack.enter_context(each) for each in wanted]
