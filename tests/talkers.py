"""Scripted models that commands load by name: they say sentences, warn, are slow, or get stuck."""

from __future__ import annotations

import logging
import sys
import time

from tests.scripted import ScriptedModel

TEXT = (
    "This is the first sentence of a talk that goes on and on. "
    "Here comes the second one, which is a little longer than a line of eighty columns is. "
    "It ends."
)


def sentences() -> ScriptedModel:
    """Three sentences, a word every 400 ms; their stops come with the words."""
    return ScriptedModel([(word, 400.0 * (i + 1)) for i, word in enumerate(TEXT.split())])


class _Working(ScriptedModel):
    """Does something whenever it hears."""

    def __init__(self, work) -> None:
        super().__init__([(word, 400.0 * (i + 1)) for i, word in enumerate(TEXT.split())])
        self._work = work

    def hear(self, streams, chunks, last) -> None:
        super().hear(streams, chunks, last)
        self._work(streams[0].heard_ms)


def warning() -> ScriptedModel:
    """Warns after two seconds."""
    log = logging.getLogger("dragoman.audio")
    return _Working(lambda ms: log.warning("Something is odd.") if ms == 2000 else None)


def slow() -> ScriptedModel:
    """Needs 1.2 s for a chunk, however long that is."""
    return _Working(lambda ms: time.sleep(1.2))


def stuck() -> ScriptedModel:
    """Says so, and never comes back."""

    def work(ms: float) -> None:
        sys.stdout.write("stuck\n")
        sys.stdout.flush()
        time.sleep(1000)

    return _Working(work)
