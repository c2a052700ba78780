"""Silence for a library that talks to the terminal.

libmpg123, inside libsndfile, prints what it thinks of a damaged mp3, and nobody can tell it not to.
It writes to C's own `stderr`, which Python never uses: that leads nowhere while the library works.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_lock = threading.Lock()
_working = 0  # threads that are in the library now


@contextmanager
def hushed() -> Iterator[None]:
    """What C libraries print meanwhile goes nowhere; elsewhere than with glibc it is heard."""
    if not _is_known():
        yield
        return
    _enter(1)
    try:
        yield
    finally:
        _enter(-1)


def _enter(change: int) -> None:
    global _working
    with _lock:
        _working += change
        stream, terminal, nowhere = _streams()
        stream.value = nowhere if _working else terminal


@cache
def _is_known() -> bool:
    return platform.libc_ver()[0] == "glibc"


@cache
def _streams() -> tuple[ctypes.c_void_p, int | None, int | None]:
    """C's variable, what it is, and a stream that leads nowhere."""
    library = ctypes.CDLL(None)
    library.fopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p.in_dll(library, "stderr")
    return stream, stream.value, library.fopen(os.devnull.encode(), b"w")
