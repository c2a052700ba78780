"""A translator for the tests of the Python interface."""

import pytest

import dragoman
from tests.api.talks import SETTINGS


@pytest.fixture
def translator():
    with dragoman.Translator(**SETTINGS) as translator:
        yield translator
