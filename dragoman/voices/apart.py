"""Work that is done in its order on a thread of its own, while its owner goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")
POLL = 0.1


class Apart(Generic[T]):
    """Does one piece of work after the other; what each returned or raised is taken in that order.

    To be used by one thread alone.
    """

    def __init__(self, name: str) -> None:
        self.left = 0
        """Pieces of work whose outcome was not taken."""
        self._asked: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._outcomes: SimpleQueue[tuple[T] | BaseException] = SimpleQueue()
        self._ended = False
        # It dies with the process: a voice that is stuck must not hold that up.
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def do(self, work: Callable[[], T]) -> None:
        """Do this after what was asked for before; returns at once."""
        if not self._ended:
            self.left += 1
            self._asked.put(work)

    def taken(self, *, wait: bool = False) -> Iterator[T]:
        """What was returned since the last time; `wait`: by all that was asked for, unless it ends.

        What a piece of work raised is raised here, in its turn.
        """
        while self.left and (wait or not self._outcomes.empty()):
            outcome = self._next()
            if outcome is None:
                return
            self.left -= 1
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome[0]

    def _next(self) -> tuple[T] | BaseException | None:
        """The next outcome; None if it has ended before that. A signal that another thread of the
        process gets does not wake this one, so it looks up by itself now and then."""
        while not (self._ended and self._outcomes.empty()):
            with suppress(Empty):
                return self._outcomes.get(timeout=POLL)
        return None

    def end(self) -> None:
        """Let the thread go: what it has not begun is not done. A signal may call this, too."""
        self._ended = True
        self._asked.put(None)  # wakes the thread

    def _run(self) -> None:
        while (work := self._asked.get()) is not None and not self._ended:
            try:
                self._outcomes.put((work(),))
            except BaseException as error:  # its owner's to tell
                self._outcomes.put(error)
