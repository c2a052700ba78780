"""Policies of somebody's own, as wrong as such code can be."""

from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.policies import Policy


@dataclass(frozen=True)
class Fails(Policy):
    """From so many milliseconds on."""

    at: int = 0

    def __post_init__(self):
        if self.at < 0:
            raise ValueError("before the beginning?")
        if self.at > 99999:
            raise DragomanError("So late is never.")

    def allow(self, heard, said):
        if heard.ms >= self.at:
            self.fail()
        return super().allow(heard, said)

    def fail(self):
        return min([])  # the line


@dataclass(frozen=True)
class Silent(Policy):
    def allow(self, heard, said):
        pass


@dataclass(frozen=True)
class Half(Policy):
    def commit(self, draft, past):
        return len(draft.tokens) / 2
