"""Captions in the terminal: final words plain, interim words dim, the lag beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.audio.chunk import Chunk
from dragoman.interpreter import Update
from dragoman.listeners import Lag, Listener, plain_text
from dragoman.setup import Setup

if TYPE_CHECKING:
    from rich.console import RenderableType

KEPT = 2000  # characters of final text that stay on the screen


@contextmanager
def captions_screen(setup: Setup) -> Iterator[Listener]:
    """A caption panel on a terminal; plain text where the output is a file or a pipe."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    if not console.is_terminal:
        with plain_text() as printer:
            yield printer
        return
    with Live(console=console, auto_refresh=False) as live:
        yield _Screen(setup, lambda panel: live.update(panel, refresh=True))


class _Screen:
    def __init__(self, setup: Setup, show: Callable[[RenderableType], None]) -> None:
        self._show = show
        self._title = f"{setup.source or '?'} → {setup.target} · {setup.policy}"
        self._final = ""
        self._interim = ""
        self._lag = Lag()
        self._behind_ms = 0.0
        show(self._panel())

    def take(self, chunk: Chunk, update: Update) -> None:
        self._lag.take(update)
        self._final = (self._final + "".join(update.said))[-KEPT:]
        self._interim = update.interim
        self._behind_ms = update.hearing.end_ms - update.hearing.arrival_ms
        self._show(self._panel())

    def _panel(self) -> RenderableType:
        from rich.panel import Panel
        from rich.text import Text

        text = Text(self._final.lstrip())
        text.append(self._interim, style="dim italic")
        lag = "listening" if not self._lag.words else f"{self._lag.words} words"
        if self._lag.aware_ms is not None:
            lag = f"{self._lag.aware_ms / 1000:.1f} s behind"
        work = f"work {self._behind_ms / 1000:.2f} s a chunk, load {self._lag.load:.0%}"
        return Panel(text, title=self._title, subtitle=f"{lag} · {work}", title_align="left")
