"""What waits without end fails instead: what is broken must not hold up all other tests."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def failing_after(seconds: float) -> Iterator[None]:
    """Fail what is still not done then; of several, one inside another, the innermost counts."""

    def on_alarm(*_: object) -> None:
        pytest.fail(f"It is stuck: it was not done after {seconds:g} s.")

    before = signal.signal(signal.SIGALRM, on_alarm)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, before)
