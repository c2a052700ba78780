"""The real server on loopback, on a thread."""

from __future__ import annotations

import threading
from contextlib import contextmanager

from dragoman.serve.run import Address, make_server
from tests.serve.clients import make_service


@contextmanager
def running(cert=None, key=None, **settings):
    """The service and its address."""
    service = make_service(**settings)
    server = make_server(service, cert, key)
    with Address("127.0.0.1", 0).bound() as address:
        address.listen()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [address]}, daemon=True)
        thread.start()
        try:
            yield service, f"{'wss' if cert else 'ws'}://127.0.0.1:{address.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive(), "the server did not end"
