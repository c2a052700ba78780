"""The one error that users see: a sentence that says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Told:
    """What is told to people: to those who type commands with their `advice`, to others without.

    `advice` follows behind a semicolon, or as a sentence or an aside of its own where it begins
    with a capital or a bracket.
    """

    what: str
    advice: str = ""

    def __str__(self) -> str:
        if not self.advice:
            return self.what
        if self.advice[0].isupper():
            return f"{self.what} {self.advice}"
        between = " " if self.advice.startswith("(") else "; "
        return f"{self.what.removesuffix('.')}{between}{self.advice}"


class DragomanError(Exception):
    """Bad input, a missing file, a policy that does not fit: shown as a sentence, exit status 2.

    `what` is wrong is a whole sentence, for everybody. `advice` is for whoever typed the command
    alone, and all that names options and commands is in it: clients of a server are not told it.
    """

    def __init__(self, what: str = "", *, advice: str = "") -> None:
        super().__init__(what)
        self.what, self.advice = what, advice

    def __str__(self) -> str:
        return str(Told(self.what, self.advice))

    def plain(self) -> DragomanError:
        """The same for another process, which may not know its class."""
        return DragomanError(self.what, advice=self.advice)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[DragomanError], args: tuple[Any, ...]) -> DragomanError:
    """An error that was pickled or is copied, without its `__init__`: a class of its own may have
    another. What it held comes after."""
    return kind.__new__(kind, *args)


def either(names: Sequence[str]) -> str:
    """What there is to choose from, in a sentence: `a`, `a or b`, `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
