"""Whoever asks us to end, by Ctrl-C or another signal, and a terminal that is gone."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
_HANGUP = getattr(signal, "SIGHUP", None)  # the window was closed, the line is gone


@contextmanager
def interrupts(asked: Callable[[], None], gone: Callable[[], None]) -> Iterator[None]:
    """What is done when somebody asks us to end, and when the terminal is gone."""

    def on_hangup(*_: object) -> None:  # it may come twice: from the shell and from the system
        _leave_terminal()
        gone()

    before = {kind: signal.signal(kind, lambda *_: asked()) for kind in _INTERRUPTS}
    if _HANGUP is not None and signal.getsignal(_HANGUP) != signal.SIG_IGN:
        before[_HANGUP] = signal.signal(_HANGUP, on_hangup)
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _leave_terminal() -> None:
    """Let what is still to be shown go nowhere: an error of writing it would cost the files."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        with suppress(OSError):  # it is closed
            if stat.S_ISCHR(os.fstat(descriptor).st_mode):
                os.dup2(nowhere, descriptor)
    os.close(nowhere)
