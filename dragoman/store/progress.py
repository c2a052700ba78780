"""What the user sees while the store works: one bar on the standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """A progress bar, drawn only on a terminal; elsewhere each new task is one plain line."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
        from rich.progress import TransferSpeedColumn as Speed

        self.console = Console(stderr=True, highlight=False)
        words = TextColumn("{task.description}", markup=False)
        columns = (words, BarColumn(), DownloadColumn(), Speed())
        self._progress: Progress = Progress(*columns, console=self.console, transient=True)
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self._progress.stop()

    def say(self, sentence: str) -> None:
        self.console.print(sentence, markup=False, soft_wrap=True)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Start over with another task, `done` bytes of which are already there."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=total, completed=done)

    def advance(self, count: int) -> None:
        if self._task is not None:
            self._progress.advance(self._task, count)
