"""What is shown on a terminal, and what becomes of it once the terminal is gone."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def shown_on(descriptor: int) -> Iterator[None]:
    """Write to what may be a terminal. Once that is gone, what is shown goes nowhere: an error in
    writing it would cost the talk its files. So does what is written to standard error once that
    fails, whatever it is."""
    try:
        yield
    except OSError as error:
        if descriptor == 2:
            lead_nowhere(descriptor)
        elif error.errno != errno.EIO or not leave_terminal(descriptor):
            raise


def leave_terminal(descriptor: int) -> bool:
    """Let a descriptor lead nowhere if it is a terminal's, also that of one that is gone."""
    try:
        left = stat.S_ISCHR(os.fstat(descriptor).st_mode)
    except OSError:  # it is closed
        return False
    if left:
        lead_nowhere(descriptor)
    return left


def lead_nowhere(descriptor: int) -> None:
    """What is written to a descriptor from now on is dropped."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
