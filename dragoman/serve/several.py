"""Several identical processes behind one address: one who starts them, keeps them alive and ends
them.

Python keeps one core busy, whatever a GPU could do beside it. The system shares out whoever
connects among the processes that listen (SO_REUSEPORT); each also has a port of its own, for this
machine alone, where the others find its rooms (`peers.py`) and Prometheus its figures.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from dragoman.errors import DragomanError
from dragoman.serve.child import Doors
from dragoman.serve.parent import Parent
from dragoman.serve.run import Address
from dragoman.serve.settings import Settings
from dragoman.setup import Setup

LAST_PORT = 65535


def check_sharing() -> None:
    """Refuse systems that do not share out connections."""
    if sys.platform != "linux":
        raise DragomanError(
            "Several processes behind one address need Linux, which shares out those who connect.",
            advice="leave --processes out, or start several by hand and put a proxy before them "
            "(docs/service.md).",
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
                f"Behind port {address.port} there are no ports for {count} processes.",
                advice="choose a lower one with --port.",
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
