"""Weights that the tests of real voices need: small ones are fetched, large ones must be there."""

import pytest

from dragoman.errors import DragomanError
from dragoman.store import find, get

LARGE = {"kokoro": "121 MB", "piper-en_US-joe": "63 MB"}


def need(model: str) -> None:
    """Fetch a model that is small; else skip the test, with what to do to have it run."""
    if model in LARGE and find(model) is None:
        pytest.skip(f"{model} is {LARGE[model]}; to try it too: dragoman models get {model}")
    try:
        get(model)
    except DragomanError as error:
        pytest.skip(f"{model} cannot be fetched: {error}")
