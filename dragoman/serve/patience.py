"""HTTP and WebSocket for clients who may be slow: to ask, to read, or to hang up.

uvicorn waits for ever for the rest of a request, and for a client that does not read what it is
told: such a connection would keep its memory and its seat.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol

HEAD = 10.0
"""Seconds for the head of a request, from the connection or from its first byte on."""
SLOWEST = 4096
"""Bytes a second that a client takes or sends, in the long run: what speech takes in Opus."""
STALL = 30.0
"""Seconds more for what waits to be read: a line may be gone for a moment."""
PIECE = 1 << 16
"""Bytes of an answer that wait to be read at once."""


class _Unread:
    """A connection that is cut if its client does not read what waits for it."""

    transport: asyncio.Transport
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)  # type: ignore[misc]
        transport.set_write_buffer_limits(high=1)  # we are told if anything waits; 0 fails with TLS
        web, option = transport.get_extra_info("socket"), getattr(socket, "TCP_NOTSENT_LOWAT", None)
        if option is not None:  # else the system takes megabytes, and is quiet until many are read
            web.setsockopt(socket.IPPROTO_TCP, option, PIECE)

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]
        self._stop_expecting()
        patience = STALL + self.transport.get_write_buffer_size() / SLOWEST
        # To close would wait until all is read.
        self._unread = asyncio.get_running_loop().call_later(patience, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_expecting()
        super().resume_writing()  # type: ignore[misc]

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_expecting()
        super().connection_lost(exc)  # type: ignore[misc]

    def _stop_expecting(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


class Impatient(_Unread, H11Protocol):
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


_Socket: Any = AutoWebSocketsProtocol


class ImpatientSocket(_Unread, _Socket):  # type: ignore[misc]
    """A WebSocket whose client reads, and asks for it in few words."""

    _heard_at = 0.0  # when something last came

    def keepalive_timeout(self) -> None:
        """A ping was not answered in time. The answer stands behind what the client has sent
        before: who sends faster than is heard is there, and waits; so does the answer."""
        if self.read_paused or self.loop.time() - self._heard_at < self.ping_timeout:
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
        else:
            super().keepalive_timeout()

    def data_received(self, data: bytes) -> None:
        self._heard_at = self.loop.time()
        super().data_received(data)
        conn: Any = getattr(self, "conn", None)
        if getattr(conn, "handshake_exc", None) is not None:  # refused; uvicorn would say nothing
            self.transport.write(b"".join(conn.data_to_send()))
            self.transport.close()


class InPieces:
    """An application, its answers in pieces: one that is handed over whole counts as told, and its
    connection as idle, before anybody has read it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_pieces(message: Message) -> None:
            body = message.get("body", b"")
            last = max(0, len(body) - 1) // PIECE * PIECE  # where the last piece begins
            for at in range(0, last, PIECE):
                await send({**message, "body": body[at : at + PIECE], "more_body": True})
            await send({**message, "body": body[last:]} if last else message)

        await self._app(scope, receive, send_pieces if scope["type"] == "http" else send)
