"""Whoever asks us to end, by Ctrl-C or another signal, and a terminal that is gone."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dragoman.terminal import leave_terminal

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
_HANGUP = getattr(signal, "SIGHUP", None)  # the window was closed, the line is gone


@contextmanager
def interrupts(asked: Callable[[], None], gone: Callable[[], None]) -> Iterator[None]:
    """What is done when somebody asks us to end, and when the terminal is gone."""

    def on_hangup(*_: object) -> None:  # it may come twice: from the shell and from the system
        leave_terminal(1)
        leave_terminal(2)
        gone()

    before = {kind: signal.signal(kind, lambda *_: asked()) for kind in _INTERRUPTS}
    if _HANGUP is not None and signal.getsignal(_HANGUP) != signal.SIG_IGN:
        before[_HANGUP] = signal.signal(_HANGUP, on_hangup)
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
