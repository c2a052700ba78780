"""Progress bars on standard error, shown to people only, and gone before anything else is told."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dragoman.audio.chunk import Chunk
from dragoman.errors import DragomanError
from dragoman.interpreter import Update
from dragoman.listeners import Listener


@contextmanager
def clip_progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar over clips: call it with (done, total). Fewer than before begin another run."""
    from rich.progress import MofNCompleteColumn

    with _bar(MofNCompleteColumn()) as bar:
        task = bar.add_task(title, total=None)

        def on_clip(done: int, total: int) -> None:
            if done < bar.tasks[task].completed:
                bar.reset(task)
            # The end is seen, too, though the next run may begin before the bar is drawn again.
            bar.update(task, completed=done, total=total, refresh=done == total)

        yield on_clip


@contextmanager
def voicing_progress(limit: int | None) -> Iterator[Callable[[int, float], None]]:
    """A bar over utterances, of which there may be a limit: call it with (done, hours)."""
    from rich.progress import TimeElapsedColumn

    spoken = "{task.completed} utterances  {task.fields[hours]:.1f} h of speech"
    with _bar(spoken, TimeElapsedColumn()) as bar:
        task = bar.add_task("voicing", total=limit, hours=0.0)
        yield lambda done, hours: bar.update(task, completed=done, hours=hours)


@contextmanager
def audio_progress(
    files: Sequence[str], start: float, end: float | None, *, hidden: bool
) -> Iterator[Callable[[int, float], Listener]]:
    """A bar over the seconds of recordings, moved on by every chunk: call it with the number of
    the recording that is heard now, and from where on.

    On a terminal that shows the text itself there is none: the text is progress enough. Nor where
    the text goes through a pipe, since who reads it may show it on this terminal (`| tee`).
    """
    unseen = hidden or sys.stdout.isatty() or _into_pipe()
    if unseen or (bar := _bar()).disable:  # to know how long it is may take a while
        yield lambda number, begin: _Heard(lambda seconds: None)
        return
    lengths = [_length(file, start, end) for file in files]
    with bar:
        task = bar.add_task("listening", total=sum(lengths) or None)

        def listen(number: int, begin: float) -> Listener:
            if len(files) > 1:
                told = f"listening {number + 1}/{len(files)}"
                before = sum(lengths[:number]) + begin - start
                bar.update(task, description=told, completed=before)
            return _Heard(lambda seconds: bar.update(task, advance=seconds))

        yield listen


def _length(file: str, start: float, end: float | None) -> float:
    """Seconds that are wanted of a recording; 0 where none can be heard, or where no header tells,
    as with raw samples."""
    from dragoman.audio.source import duration

    try:
        return (end or duration(file)) - start
    except DragomanError:
        return 0.0


def _into_pipe() -> bool:
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):  # it is closed, or no file
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class _Heard:
    def __init__(self, advance: Callable[[float], None]) -> None:
        self._advance = advance

    def take(self, chunk: Chunk, update: Update) -> None:
        self._advance(chunk.seconds)


def _bar(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),  # '[draft]' in a name is the name
        BarColumn(),
        *columns,
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
        redirect_stdout=False,  # that is the result's alone
    )
