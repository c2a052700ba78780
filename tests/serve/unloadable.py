"""Models that cannot be loaded: one says why, the other takes its process with it."""

import os

from dragoman.errors import DragomanError


def refused():
    raise DragomanError("There is no such model in this test.")


def fatal():
    os._exit(3)
