"""Several identical processes behind one address: one who starts them, keeps them alive and ends
them.

Python keeps one core busy, whatever a GPU could do beside it. The system shares out whoever
connects among the processes that listen (SO_REUSEPORT); each also has a port of its own, for this
machine alone, where the others find its rooms (`peers.py`) and Prometheus its figures.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

from dragoman.errors import DragomanError
from dragoman.files import leave_terminal
from dragoman.models.device import share_gpu
from dragoman.serve.lanes import load, on_gpu
from dragoman.serve.logs import log_to_stderr, note
from dragoman.serve.run import Address, Server, allow_many_connections, hangups, make_server
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.setup import Setup, System

END, HANG_UP = "end", "hang up"  # what a parent says
LAST_PORT = 65535
LOOK = 5.0  # seconds between two looks whether processes are alive
HANGS = 6
"""Looks in which nothing has moved in a process: it hangs, whoever is in it waits, and whoever the
system sends there; it is ended, and another takes its place."""
LONGEST_WAIT = 60.0  # seconds before a process that ends again and again is started once more


@dataclass(frozen=True, slots=True)
class Doors:
    """Where all processes listen, and where one of them does by itself."""

    shared: Address
    own: Address


@dataclass(slots=True)
class Child:
    """A process, as its parent knows it."""

    process: BaseProcess
    orders: Connection
    beat: Any  # a number of both processes, which it changes ten times a second
    ready: bool = False
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


def check_sharing() -> None:
    """Refuse systems that do not share out connections."""
    if sys.platform != "linux":
        raise DragomanError(
            "--processes needs Linux, which shares out those who connect; start several by hand "
            "and put a proxy before them (docs/service.md)."
        )


def serve_in(
    count: int,
    address: Address,
    setup: Setup,
    settings: Settings,
    ready: Callable[[int, list[int]], None],
) -> None:
    """Serve until somebody ends it. `ready` is told the port, and those of the single processes,
    once all of them have loaded their model."""
    with ExitStack() as kept:
        address.bound().close()  # refused, if somebody else has it: below, it could be shared

        def reserved(host: str, port: int) -> int:
            sock = kept.enter_context(Address(host, port).bound(shared=True))
            found: int = sock.getsockname()[1]
            return found

        if address.port + count > LAST_PORT:
            raise DragomanError(
                f"Behind port {address.port} there are no ports for {count} processes; choose a "
                "lower one with --port."
            )
        port = reserved(address.host, address.port)
        own = [reserved("127.0.0.1", address.port and port + 1 + n) for n in range(count)]
        shared = replace(address, port=port)
        doors = [Doors(shared, replace(address, host="127.0.0.1", port=one)) for one in own]
        settings = replace(
            settings,
            secret=settings.secret or secrets.token_urlsafe(24),
            siblings=tuple(door.own.url(door.own.port).rstrip("/") for door in doors),
        )
        Parent(doors, setup, settings, lambda: ready(port, own)).run()


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
        self._next_look = 0.0
        self._asked = 0  # how often somebody has asked for the end
        self._window = sys.stderr.isatty()  # asked now: of one that is closed nobody can tell

    def run(self) -> None:
        """Until all have ended."""
        before = {one: signal.signal(one, self._end) for one in (signal.SIGINT, signal.SIGTERM)}
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
            else:
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
                "memory; take fewer --processes, or a smaller model."
            )
        pause = min(LONGEST_WAIT, 2.0 ** self._lost[number])
        self._lost[number] += 1
        self._due[number] = time.monotonic() + pause
        note("process lost", process=number, ended=_how(child.process), again_in=pause)


class ObedientServer(Server):
    """A server that obeys its parent, and not the signals that a terminal or a supervisor sends to
    all processes at once."""

    beat: Any

    async def on_tick(self, counter: int) -> bool:
        self.beat.value = time.monotonic()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        pass


def live(
    setup: Setup, settings: Settings, doors: Doors, count: int, orders: Connection, beat: Any
) -> None:
    """The life of a process."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    servers: list[Server] = []
    threading.Thread(target=_obey, args=(orders, servers), daemon=True).start()
    try:
        system = System(setup)
        if on_gpu(system):
            share_gpu(count)
        server = make_server(
            Service(system, settings), doors.own.cert, doors.own.key, ObedientServer
        )
        assert isinstance(server, ObedientServer)
        server.beat = beat
        load(system, settings.lanes)
        allow_many_connections()
        with doors.shared.bound(shared=True) as shared, doors.own.bound(shared=True) as own:
            shared.listen()
            own.listen()
            log_to_stderr()
            servers.append(server)
            orders.send("")
            server.run(sockets=[shared, own])
    except DragomanError as error:
        orders.send(str(error))


def _obey(orders: Connection, servers: list[Server]) -> None:
    """End when the parent says so, and with it."""
    try:
        while True:
            order = orders.recv()
            if order == END and not servers:  # nobody has come yet
                os._exit(0)
            for server in servers:
                (server.end if order == END else server.hang_up)()
    except (EOFError, OSError):
        os._exit(1)


def _send(orders: Connection, order: str) -> None:
    with suppress(OSError):  # it has ended already
        orders.send(order)


def _how(process: BaseProcess) -> str:
    """How a process has ended, in words."""
    code = process.exitcode or 0
    return f"signal {-code}" if code < 0 else f"status {code}"
