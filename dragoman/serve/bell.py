"""Rings when something is new: for the one who waits for it, and for those who follow along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Bell(asyncio.Event):
    """An event that also calls its followers, each time it is set.

    A follower looks for itself what is new, and at once: it may be called for nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._followers: list[Callable[[], None]] = []

    def set(self) -> None:
        super().set()
        for follower in tuple(self._followers):
            follower()

    def follow(self, follower: Callable[[], None]) -> None:
        self._followers.append(follower)

    def unfollow(self, follower: Callable[[], None]) -> None:
        """May be called twice."""
        if follower in self._followers:
            self._followers.remove(follower)


class Pulse:
    """Wakes all who wait. Who looks for news takes `next` first, and waits for it afterwards."""

    def __init__(self) -> None:
        self.next = asyncio.Event()

    def beat(self) -> None:
        self.next.set()
        self.next = asyncio.Event()
