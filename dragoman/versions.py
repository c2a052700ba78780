"""Which versions of Dragoman have worked on something that is made in several goes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from dragoman import __version__

log = logging.getLogger(__name__)


def with_this_one(folder: Path, before: Sequence[str]) -> list[str]:
    """Those that have worked on what is in a folder, with this one, which works on it from now on;
    another one than the last is told of, as what comes of both is mixed."""
    if before[-1:] == [__version__]:
        return [*before]
    if before:
        log.warning(
            "%s was begun by Dragoman %s and goes on with %s: what comes of it is of both.",
            *(folder, before[-1], __version__),
        )
    return [*before, __version__]
