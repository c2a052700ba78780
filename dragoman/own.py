"""Code of the user's own: a policy, a detector, a model, named by where it is. An error in it is
reported with its line, as other bad input is."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import Any

from dragoman.errors import DragomanError

_packages: set[str] = set()  # in which the user's code is


class OwnError(DragomanError):
    """Code of the user's own went wrong."""


def find_own(module: str, name: str, what: str) -> Any:
    """What has this name in a module of the user's; `what` it is, for errors."""
    _packages.update({module.partition(".")[0]} - {"dragoman"})
    with own_told():
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            if fault_of_own(error) is not None:  # it is there, and fails
                raise
            raise DragomanError(f"There is no {what} ({error}).") from error


@contextmanager
def own_told() -> Iterator[None]:
    """In here an error in code of the user's own becomes a sentence."""
    try:
        yield
    except Exception as error:
        if (fault := fault_of_own(error)) is None:
            raise
        raise fault from error


def fault_of_own(error: Exception) -> OwnError | None:
    """The sentence about an error in the user's own code; None for one that happened elsewhere, or
    is a sentence already."""
    kind = type(error).__name__
    if isinstance(error, DragomanError):
        return None
    if isinstance(error, SyntaxError):  # it has not run
        return OwnError(f"{kind}: {error}.")
    found = None
    for frame, line in walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").partition(".")[0] in _packages:
            found = frame.f_code.co_filename, line
    if found is None:
        return None
    file, line = found
    code = linecache.getline(file, line).strip()
    return OwnError(f"{kind} in {_near(file)}, line {line} ({code}): {error or 'it says no more'}.")


def _near(file: str) -> str:
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
