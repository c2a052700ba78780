"""HTTP for clients who may be slow to ask: uvicorn waits for ever for the rest of a request."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD = 10.0
"""Seconds for the head of a request, from the connection or from its first byte on."""


class Impatient(H11Protocol):
    """A connection that is closed unless a request comes; answering one may take its time."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Begin to wait, unless that has begun: each byte more would else win a client time."""
        if self._has_request():
            self._stop_waiting()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD, self.transport.close)

    def _has_request(self) -> bool:
        """Whether somebody answers one now, or has taken the connection for a socket."""
        upgraded = self.transport.get_protocol() is not self
        return upgraded or (self.cycle is not None and not self.cycle.response_complete)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
