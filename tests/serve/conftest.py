"""A service behind starlette's test client."""

import signal

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import make_app
from tests.serve.clients import make_service


@pytest.fixture(autouse=True)
def nothing_hangs():
    """A test that waits for what never comes fails."""

    def give_up(*_):
        raise AssertionError("What this test waits for does not come.")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 60.0, 1.0)  # and again, should it be caught on the way
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
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
