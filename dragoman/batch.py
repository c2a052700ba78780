"""Work for several at once: each is charged its share of it, and fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from dragoman.models import BatchError


class Member(Protocol):
    """One for whom work is done."""

    work_ms: float
    error: Exception | None

    def fail(self, error: Exception) -> None:
        """Nothing more is done for this one."""


M = TypeVar("M", bound=Member)


class Batch(Generic[M]):
    """Members that take the same steps; whoever has failed takes no more of them."""

    def __init__(self, members: Sequence[M], timer: Callable[[], float]) -> None:
        self._members, self._timer = members, timer

    def going(self) -> list[M]:
        """Return those who have not failed."""
        return [member for member in self._members if member.error is None]

    def each(self, work: Callable[[M], None]) -> None:
        """Do work that is each one's own."""
        for member in self.going():
            self.together(lambda alone: work(alone[0]), [member])

    def together(self, work: Callable[[Sequence[M]], None], members: Sequence[M]) -> None:
        """Do work for `members` at once: each pays an equal share, and whoever the work names as
        failed fails alone; otherwise an error is everybody's."""
        if not members:
            return
        start = self._timer()
        try:
            work(members)
        except BatchError as several:
            for place, error in several.errors.items():
                members[place].fail(error)
        except Exception as error:
            for member in members:
                member.fail(error)
        share_ms = (self._timer() - start) * 1000.0 / len(members)
        for member in members:
            member.work_ms += share_ms
