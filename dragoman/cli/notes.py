"""What is told beside the result: on standard error, and never inside a line of the result."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.terminal import shown_on


class Notes(logging.Handler):
    """Sentences for the user, the warnings of all rooms among them.

    Where text and notes meet, a note waits until the line is over, or until the screen that shows
    it is gone.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._held = False
        self._waiting: list[str] = []
        self.latest = ""
        """For whoever shows notes in a place of his own."""
        self._advised = False
        self.about = ""
        """What stands before each note: which of several recordings it is about."""
        self.ending = False
        """Whether somebody has asked the talk to end; for whoever shows it."""

    def end(self) -> None:
        self.ending = True

    def tell(self, text: str) -> None:
        self._put(self.about + text)

    def _put(self, text: str) -> None:
        self.latest = text
        if self._held:
            self._waiting.append(text)
        else:
            tell(text)

    def advise(self, text: str) -> None:
        """Tell that the machine is too slow, and what to do; once, be it before, during or after
        a talk."""
        if not self._advised:
            self._advised = True
            self.tell(text)

    def hold(self, held: bool) -> None:
        """Whether somebody's line is open now; when it is not, what has waited is told."""
        self._held = held
        while self._waiting and not held:
            tell(self._waiting.pop(0))

    def emit(self, record: logging.LogRecord) -> None:
        self._put(f"dragoman: {record.getMessage()}")  # which says itself what it is about


def tell(text: str) -> None:
    """Say something now, if anybody can be told; a terminal breaks it between words."""
    from dragoman.cli.wrap import fitted

    # Not by click, which looks behind what is put before standard error: a bar lets notes pass it.
    with shown_on(2):
        print(fitted(text, sys.stderr), file=sys.stderr, flush=True)


@contextmanager
def told_if_stopped(lacking: str = "") -> Iterator[None]:
    """Whoever stops long work is told that it goes on from there, or would with an option."""
    try:
        yield
    except KeyboardInterrupt:
        with_it = f"With {lacking}, the same command would go on"
        tell(f"Stopped. {with_it if lacking else 'The same command goes on'} from here.")
        raise


@contextmanager
def open_notes() -> Iterator[Notes]:
    """Notes to which the warnings of Dragoman go while it works."""
    notes, logger = Notes(), logging.getLogger("dragoman")
    logger.addHandler(notes)
    try:
        yield notes
    finally:
        logger.removeHandler(notes)
        notes.hold(False)


@contextmanager
def warned_once() -> Iterator[None]:
    """In here each warning is told once: a corpus reads a recording in many parts, and a sweep
    reads it for every setting."""
    told: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        before = len(told)
        told.add(record.getMessage())
        return len(told) > before

    with open_notes() as notes:
        notes.addFilter(is_new)
        yield


def one_reader() -> bool:
    """Whether the result and the notes are read in one place: a terminal, or `2>&1`."""
    if sys.stdout.isatty() and sys.stderr.isatty():
        return True
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # one of them is closed, or no file
        return False
