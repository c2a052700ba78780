"""A service behind starlette's test client."""

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import make_app
from tests.serve.clients import make_service


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
