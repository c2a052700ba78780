"""The life of one of several processes behind one address, which does what its parent says."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from dragoman.errors import DragomanError
from dragoman.models.device import share_gpu
from dragoman.serve.lanes import load, on_gpu
from dragoman.serve.logs import log_to_stderr
from dragoman.serve.run import Address, Server, allow_many_connections, make_server
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.setup import Setup, System

END, HANG_UP = "end", "hang up"  # what a parent says


@dataclass(frozen=True, slots=True)
class Doors:
    """Where all processes listen, and where one of them does by itself."""

    shared: Address
    own: Address


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
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
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
    finally:
        servers.clear()  # the thread that obeys would keep all alive until Python is gone


def _obey(orders: Connection, servers: list[Server]) -> None:
    """End when the parent says so, and with it."""
    try:
        while True:
            order = orders.recv()
            if order == END and not servers:  # nobody has come yet
                os._exit(0)
            _hand_on(order, servers)
    except (EOFError, OSError):
        os._exit(1)


def _hand_on(order: str, servers: list[Server]) -> None:
    for server in servers:
        (server.end if order == END else server.hang_up)()
