"""Commands under a pseudo-terminal, as a person meets them."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte

from tests import warm

ROOT = Path(__file__).parents[2]
ENTER, LEAVE, HOME = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[H"
"""The alternate screen is entered and left, and a frame begins."""


class Terminal:
    """A program on a terminal of so many columns and lines, and what is on its screen."""

    def __init__(self, master: int, process: warm.Copy, columns: int, lines: int):
        self.process, self._master = process, master
        self.raw = b""
        self._screen = pyte.HistoryScreen(columns, lines, history=10_000, ratio=1.0)
        self._stream = pyte.ByteStream(self._screen)
        self._alternate = pyte.Screen(columns, lines)
        self._alternate_stream = pyte.ByteStream(self._alternate)
        self.inside = False  # the alternate screen, which pyte does not know
        self.frames: list[list[str]] = []  # of that, each when it was whole, with anything in it
        self._held = b""  # of what was written: perhaps the beginning of a mark

    def read(self, seconds: float = 0.1) -> bool:
        """Take what was written; False at the end."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # Linux tells the end of a terminal so
            return False
        self.raw += data
        self._feed(data)
        return bool(data)

    @property
    def last_inside(self) -> list[str]:
        """The last whole frame."""
        return self.frames[-1] if self.frames else []

    def _feed(self, data: bytes) -> None:
        """A busy machine writes, and is read, in pieces that end anywhere."""
        data = self._held + data
        whole = len(data) - _begun(data)
        data, self._held = data[:whole], data[whole:]
        while data:
            mark = LEAVE if self.inside else ENTER
            part, found, data = data.partition(mark)
            self._draw(part)
            if found:
                self._keep_frame()
                self.inside = not self.inside
                self._alternate.reset()

    def _draw(self, data: bytes) -> None:
        if not self.inside:
            self._stream.feed(data)
            return
        for number, frame in enumerate(data.split(HOME)):
            if number:
                self._keep_frame()
            self._alternate_stream.feed(HOME + frame if number else frame)

    def _keep_frame(self) -> None:
        """Before that it may be half new and half old, in the middle of a word."""
        if self.inside and any(self.lines[:1]):  # not emptied, as at the end
            self.frames.append(self.lines)

    def until(self, text: str) -> None:
        """Read until the screen shows a text."""
        while text not in "\n".join(self.lines):
            assert self.read(), f"{text!r} never came; the screen: {self.lines}"

    def rest(self) -> int:
        """Read to the end; the exit status."""
        while self.read():
            pass
        return self.process.wait()

    @property
    def lines(self) -> list[str]:
        """What the screen shows now, without what is empty below it."""
        screen = self._alternate if self.inside else self._screen
        shown = [line.rstrip() for line in screen.display]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    @property
    def everything(self) -> list[str]:
        """The normal screen with all that has scrolled away above it."""
        columns = range(self._screen.columns)
        above = ["".join(row[x].data for x in columns) for row in self._screen.history.top]
        return [line.rstrip() for line in [*above, *self._screen.display]]

    def hang_up(self) -> None:
        """Close the window: the program's next line cannot be written, and it is told so."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, self._master)
        os.close(nowhere)
        self.process.send_signal(signal.SIGHUP)

    def resize(self, columns: int, lines: int) -> None:
        set_size(self._master, columns, lines)
        self._alternate.resize(lines, columns)
        self._screen.resize(lines, columns)
        self.process.send_signal(signal.SIGWINCH)


def _begun(data: bytes) -> int:
    """How many bytes at the end may be the beginning of a mark."""
    at = data.rfind(b"\x1b")
    end = data[at:] if at >= 0 else b""
    return (
        len(end)
        if any(len(end) < len(m) and m.startswith(end) for m in (ENTER, LEAVE, HOME))
        else 0
    )


def set_size(descriptor: int, columns: int, lines: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


@contextmanager
def terminal(
    *args: object,
    columns: int = 80,
    lines: int = 24,
    stdin=None,
    stdout=None,
    stderr=None,
    program=("-m", "dragoman"),
    hangup=signal.SIG_DFL,
) -> Iterator[Terminal]:
    """Run `dragoman args`; each of the three streams is the terminal unless it is given.

    `hangup` is what it finds set for SIGHUP, whatever the tests themselves were started with.
    """
    master, slave = pty.openpty()
    set_size(slave, columns, lines)
    names = {"COLUMNS", "LINES", "NO_COLOR", "CI"}
    env = {key: value for key, value in os.environ.items() if key not in names}
    process = warm.Copy(
        *program, *args, env=env | {"TERM": "xterm-256color"}, hangup=hangup,
        stdin=slave if stdin is None else stdin,
        stdout=slave if stdout is None else stdout,
        stderr=slave if stderr is None else stderr,
    )  # fmt: skip
    os.close(slave)
    try:
        yield Terminal(master, process, columns, lines)
    finally:
        process.kill()
        process.wait()
        os.close(master)
