"""A service behind starlette's test client, and a deadline for every test."""

import signal

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import make_app
from tests.serve.clients import make_service

DEADLINE = 200
"""Seconds after which a test that waits for something that never comes fails, wherever it waits."""


@pytest.fixture(autouse=True, scope="session")
def hearing_hangups():
    """Servers that tests start hear SIGHUP, though whoever runs the tests may not (`nohup`).

    What is ignored here would be ignored there; what is handled here is not.
    """
    before = signal.signal(signal.SIGHUP, lambda number, frame: None)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(autouse=True)
def deadline():
    """Every wait is in the main thread in the end, and a signal ends it there."""

    def hangs(number, frame):
        signal.alarm(10)  # what is to be tidied up may hang as well
        pytest.fail(f"This test has waited for {DEADLINE} s, and would for ever.")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(DEADLINE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def opened():
    """A service behind a test client: `opened(model=…, streams=…)`."""
    clients = []

    def make(**settings):
        service = make_service(**settings)
        client = TestClient(make_app(service))
        client.__enter__()
        clients.append(client)
        return service, client

    yield make
    for client in clients:
        client.__exit__(None, None, None)
