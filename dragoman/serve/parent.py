"""Who starts several processes, keeps them alive, replaces and ends them."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

from dragoman.errors import DragomanError
from dragoman.serve.child import END, HANG_UP, Doors, live
from dragoman.serve.logs import log_to_stderr, note
from dragoman.serve.run import hangups
from dragoman.serve.settings import Settings
from dragoman.setup import Setup
from dragoman.terminal import leave_terminal

LOOK = 5.0  # seconds between two looks whether processes are alive
HANGS = 6
"""Looks in which nothing has moved in a process: it hangs, whoever is in it waits, and whoever the
system sends there; it is ended, and another takes its place."""
LONGEST_WAIT = 60.0  # seconds before a process that ends again and again is started once more
_DOUBLINGS = 10  # of a second, until that; a thousand would be no number any more


@dataclass(slots=True)
class Child:
    """A process, as its parent knows it."""

    process: BaseProcess
    orders: Connection
    beat: Any  # a number of both processes, which it changes ten times a second
    ready: bool = False
    leaving: bool = False  # since it was asked to
    seen: float = 0.0  # of the beat
    still: int = 0  # looks since then


def look_after(child: Child) -> None:
    """Notice whether a process lives; end it if it hangs. What counts is how often the parent has
    looked, not time: it may have been stopped itself."""
    beat = child.beat.value
    child.still = child.still + 1 if beat and beat == child.seen else 0
    child.seen = beat
    if child.still >= HANGS:
        child.still = 0
        note("process hangs", pid=child.process.pid)
        child.process.kill()


class Parent:
    """Starts processes, replaces those that end by themselves, and ends them all when asked to."""

    def __init__(
        self, doors: list[Doors], setup: Setup, settings: Settings, ready: Callable[[], None]
    ) -> None:
        self._doors, self._setup, self._settings = doors, setup, settings
        self._tell_ready: Callable[[], None] | None = ready
        self._children: dict[int, Child] = {}
        self._lost = [0] * len(doors)  # how often each has ended since it was last ready
        self._due: dict[int, float] = {}  # when it is started again
        self._old: list[int] = []  # to be replaced, as somebody has asked
        self._next_look = 0.0
        self._asked = 0  # how often somebody has asked for the end
        self._window = sys.stderr.isatty()  # asked now: of one that is closed nobody can tell

    def run(self) -> None:
        """Until all have ended."""
        calls = {signal.SIGINT: self._end, signal.SIGTERM: self._end, signal.SIGUSR1: self._renew}
        before = {name: signal.signal(name, call) for name, call in calls.items()}
        try:
            with hangups(self._hang_up):
                for number in range(len(self._doors)):
                    self._start(number)
                while self._children or (self._due and not self._asked):
                    self._look()
        finally:
            for child in self._children.values():
                child.process.kill()
            for name, handler in before.items():
                signal.signal(name, handler)

    def _start(self, number: int) -> None:
        context = get_context("spawn")  # libraries that compute do not survive a fork
        orders, theirs = context.Pipe()
        beat = context.RawValue("d", 0.0)
        doors = self._doors[number]
        arguments = (self._setup, self._settings, doors, len(self._doors), theirs, beat)
        process = context.Process(target=live, args=arguments, daemon=True)
        process.start()
        theirs.close()
        self._children[number] = Child(process, orders, beat)
        if self._asked:  # meanwhile
            _send(orders, END)

    def _end(self, sig: int, frame: FrameType | None) -> None:
        """Once: talks finish; twice: they do not; and then there is no asking any more."""
        self._asked += 1
        for child in self._children.values():
            if self._asked > 2:
                child.process.kill()
            elif self._asked > 1 or not child.leaving:
                child.leaving = True
                _send(child.orders, END)

    def _renew(self, sig: int, frame: FrameType | None) -> None:
        """All shall be replaced, one after the other."""
        self._old = list(range(len(self._doors)))

    def _renew_next(self) -> None:
        """Once the one before it is back: it lets its talks finish, which go on elsewhere if that
        takes too long."""
        ready = [one for one in self._children.values() if one.ready and not one.leaving]
        if self._old and len(ready) == len(self._doors) and not self._asked:
            child = self._children[self._old.pop(0)]
            child.leaving = True
            _send(child.orders, END)

    def _hang_up(self) -> None:
        """Certificates are read again; or the window was closed, and all come to their end."""
        if self._window:
            leave_terminal(1)
            leave_terminal(2)
            self._asked = max(1, self._asked)
        for child in self._children.values():
            _send(child.orders, HANG_UP)

    def _look(self) -> None:
        """Wait for news of the processes, or until one of them is to be looked after."""
        loading = [one.orders for one in self._children.values() if not one.ready]
        alive = [one.process.sentinel for one in self._children.values()]
        news = wait([*loading, *alive], timeout=0.2 if self._due else LOOK)
        for number, child in list(self._children.items()):
            if child.orders in news:
                self._hear(number, child)
            if child.process.sentinel in news:
                self._bury(number, child)
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK
            for child in self._children.values():
                look_after(child)
        for number, due in list(self._due.items()):
            if not self._asked and time.monotonic() >= due:
                del self._due[number]
                self._start(number)
        self._renew_next()

    def _hear(self, number: int, child: Child) -> None:
        """A process that was loading is ready, or tells why it will never be."""
        try:
            complaint = child.orders.recv()
        except (EOFError, OSError):
            return  # it has ended, which its sentinel tells
        if complaint and self._tell_ready:
            raise DragomanError(complaint)
        if complaint:  # the others serve, and it is tried again
            note("process not started", process=number, why=complaint)
            return
        child.ready, self._lost[number] = True, 0
        if self._tell_ready and all(one.ready for one in self._children.values()):
            self._tell_ready()
            self._tell_ready = None
            log_to_stderr()

    def _bury(self, number: int, child: Child) -> None:
        child.process.join()
        child.orders.close()
        del self._children[number]
        if self._asked:
            return
        if self._tell_ready:
            raise DragomanError(
                f"A process ended while it loaded ({_how(child.process)}), perhaps for want of "
                "memory.",
                advice="take fewer --processes, or a smaller model.",
            )
        if child.leaving:
            note("process replaced", process=number)
            self._due[number] = time.monotonic()
            return
        pause = min(LONGEST_WAIT, 2.0 ** min(self._lost[number], _DOUBLINGS))
        self._lost[number] += 1
        self._due[number] = time.monotonic() + pause
        note("process lost", process=number, ended=_how(child.process), again_in=pause)


def _send(orders: Connection, order: str) -> None:
    with suppress(OSError):  # it has ended already
        orders.send(order)


def _how(process: BaseProcess) -> str:
    """How a process has ended, in words."""
    code = process.exitcode or 0
    return f"signal {-code}" if code < 0 else f"status {code}"
