"""The real server on loopback, on a thread."""

from __future__ import annotations

import threading
from contextlib import contextmanager

from dragoman.serve.run import Address, make_server
from tests.serve.clients import make_service


@contextmanager
def serving(service, cert=None, key=None):
    """The address of a service."""
    server = make_server(service, cert, key)
    with Address("127.0.0.1", 0).bound() as socket:
        socket.listen()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
        thread.start()
        try:
            yield f"{'wss' if cert else 'ws'}://127.0.0.1:{socket.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive(), "the server did not end"


@contextmanager
def running(cert=None, key=None, **settings):
    """A service and its address."""
    service = make_service(**settings)
    with serving(service, cert, key) as url:
        yield service, url
