"""A caption screen of its own: the last lines, what may still change dimly, the lag below.

It fills the terminal while the talk runs, whatever its size becomes, and leaves nothing behind.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.audio.chunk import Chunk
from dragoman.cli.notes import Notes
from dragoman.interpreter import Update
from dragoman.lag import Lag, lived_ms
from dragoman.listeners import Listener
from dragoman.setup import Setup
from dragoman.terminal import shown_on
from dragoman.text.moments import shown_moment

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

KEPT = 20_000
"""Characters that stay: more than any terminal shows at once."""
LIVELY_MS = 15_000.0
"""The lag that is shown is that of the last words, not of the whole talk."""

NOTE_MS = 20_000.0
"""Of the talk, for which a note is shown."""


def has_screen() -> bool:
    """Whether standard error is a terminal that can do more than print lines."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal and not console.is_dumb_terminal


@contextmanager
def caption_screen(setup: Setup, notes: Notes, title: str = "") -> Iterator[Listener]:
    """The screen, on standard error: standard output is the result's alone."""
    from rich.console import Console
    from rich.live import Live

    screen = CaptionScreen(setup, notes, title)
    console = Console(stderr=True, highlight=False)
    notes.hold(True)
    live = Live(
        console=console,
        get_renderable=lambda: screen,
        screen=True,
        redirect_stdout=False,
        redirect_stderr=False,
        refresh_per_second=8,  # so that a window that was resized is filled at once
    )
    screen.refresh = live.refresh
    try:
        live.start()
        with _left_while_stopped(console):
            yield screen
    finally:
        screen.over = True  # a terminal that was resized may keep what was drawn last
        with shown_on(2):
            live.refresh()
        with shown_on(2):
            live.stop()
        notes.hold(False)


@contextmanager
def _left_while_stopped(console: Console) -> Iterator[None]:
    """Ctrl-Z leaves the shell its own screen and its cursor; who goes on (`fg`) is back here."""
    stop = getattr(signal, "SIGTSTP", None)
    if stop is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def show(shown: bool) -> None:
        with shown_on(2):
            console.set_alt_screen(shown)
            console.show_cursor(not shown)

    def on_stop(*_: object) -> None:
        show(False)
        signal.signal(stop, signal.SIG_DFL)
        os.kill(os.getpid(), stop)  # it returns when we go on
        signal.signal(stop, on_stop)
        show(True)

    before = signal.signal(stop, on_stop)
    try:
        yield
    finally:
        signal.signal(stop, before)


class CaptionScreen:
    """What was said, on as many lines as there are; drawn again whenever it is looked at."""

    def __init__(self, setup: Setup, notes: Notes, title: str = "") -> None:
        self._setup, self._notes, self._title = setup, notes, title
        self._language = setup.source
        self._through: str | None = None
        self._source = self._final = self._interim = ""
        self._heard_ms = 0.0
        self._lag = Lag()
        self._recent: list[tuple[float, float]] = []  # (heard, lag) of the last words
        self._noted, self._noted_ms = "", 0.0  # the note that is shown, and since when
        # What was wrapped last, by its style: all is drawn several times a second, and a talk of
        # half an hour would keep a tenth of a core busy with that.
        self._laid_out: dict[str, tuple[tuple[str, str, int], list[Text]]] = {}
        self.over = False
        self.refresh: Callable[[], None] = lambda: None
        """Draws at once what has come, instead of soon."""

    def take(self, chunk: Chunk, update: Update) -> None:
        self._lag.take(update)
        self._language = update.language or self._language
        self._through = update.through
        self._source = (self._source + "".join(update.transcript))[-KEPT:]
        self._final = (self._final + "".join(update.said))[-KEPT:]
        self._interim = update.interim
        self._heard_ms = update.hearing.audio_ms
        if update.said and (lag_ms := lived_ms(update)) is not None:
            self._recent.append((self._heard_ms, lag_ms))
        self._recent = [row for row in self._recent if row[0] > self._heard_ms - LIVELY_MS]
        with shown_on(2):
            self.refresh()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        if self.over:
            return
        height = console.height
        gap = [Text("")] if height > 8 else []
        notes = self._wrapped(console, self._note(), "yellow")[:3] if height > 6 else []
        room = max(1, height - 2 - len(notes) - 2 * len(gap))
        yield Text(self._head(), style="bold", no_wrap=True, overflow="ellipsis")
        yield from gap
        yield from self._body(console, room)
        yield from gap
        yield from notes
        yield Text(self._foot(), style="dim", no_wrap=True, overflow="ellipsis", end="")

    def _body(self, console: Console, room: int) -> list[Text]:
        """The last lines that find room: the speaker's words above, if there are any, and below
        them the translation with what may still change."""
        from rich.text import Text

        above = self._wrapped(console, self._source.lstrip(), "cyan") if room > 2 else []
        above = above[-(room // 3) :] + [Text("")] if above else []
        lines = self._wrapped(console, self._final.lstrip(), "", self._interim)
        lines = [*above, *lines[-(room - len(above)) :]]
        return lines + [Text("")] * (room - len(lines))

    def _wrapped(self, console: Console, text: str, style: str, interim: str = "") -> list[Text]:
        from rich.text import Text

        if not text and not interim.strip():
            return []
        asked = (text, interim, console.width)
        if style not in self._laid_out or self._laid_out[style][0] != asked:
            shown = Text(text, style=style)
            shown.append(interim if text else interim.lstrip(), style="dim italic")
            self._laid_out[style] = asked, list(shown.wrap(console, console.width, overflow="fold"))
        return self._laid_out[style][1]

    def _note(self) -> str:
        """The newest note, until it can have been read: what is said needs the room. It is printed
        with the others when the screen is gone."""
        if self._notes.latest != self._noted:
            self._noted, self._noted_ms = self._notes.latest, self._heard_ms
        return self._noted if self._heard_ms - self._noted_ms < NOTE_MS else ""

    def _head(self) -> str:
        if self._notes.ending:
            return "Ending   Ctrl-C leaves the rest out"
        way = [self._language or "?", *filter(None, [self._through]), self._setup.target]
        return self._title or f"{' → '.join(way)}   Ctrl-C ends the talk"

    def _foot(self) -> str:
        if not self._lag.words:
            behind = "listening"
        elif self._recent:
            behind = (
                f"{sum(lag for _, lag in self._recent) / len(self._recent) / 1000:z.1f} s behind"
            )
        else:
            behind = f"{self._lag.words} words"
        return f"{behind} · load {self._lag.load:.0%} · {shown_moment(self._heard_ms / 1000)} heard"
