"""The figures of all replicas of a cluster, whichever of them is asked: each hangs out its own."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dragoman.serve.logs import note
from dragoman.serve.metrics import merged

EVERY = 2.0  # seconds
OLD = 5 * EVERY
"""Seconds after which figures are those of a replica that is gone."""
_PLACE = {"name": "dragoman-figures", "namespace": "dragoman"}


class Board:
    """Where replicas hang out their figures; an actor of Ray."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._hung: dict[str, tuple[float, str]] = {}

    def hang(self, who: str, text: str) -> None:
        """In place of what this one has hung out before."""
        self._hung[who] = (self._timer(), text)

    def read(self) -> dict[str, str]:
        """What hangs there, but of those who are gone."""
        now = self._timer()
        self._hung = {who: (at, text) for who, (at, text) in self._hung.items() if now - at < OLD}
        return {who: text for who, (_, text) in self._hung.items()}


class Replica:
    """One replica before the board, which it puts up if it is the first."""

    def __init__(self, ray: Any) -> None:
        options = {**_PLACE, "get_if_exists": True, "lifetime": "detached", "num_cpus": 0}
        self._board: Any = ray.remote(Board).options(**options).remote()
        self._who = f"{socket.gethostname()}:{os.getpid()}"

    async def run(self, figures: Callable[[], str]) -> None:
        """Hang out one's own figures, for ever."""
        while True:
            try:
                await self._board.hang.remote(self._who, figures())
            except Exception as error:  # of Ray, of many kinds; talks go on without
                note("no board", error=type(error).__name__)
            await asyncio.sleep(EVERY)

    async def all(self, own: str) -> str:
        """One's own figures, as they are now, beside those of the others."""
        try:
            others = await self._board.read.remote()
        except Exception as error:
            note("no board", error=type(error).__name__)
            others = {}
        return merged({**others, self._who: own})


def take_down(ray: Any) -> None:
    """The service is at its end; nobody hangs out anything."""
    with suppress(ValueError):  # there is none
        ray.kill(ray.get_actor(**_PLACE))
