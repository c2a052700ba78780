"""The web application: the socket, and what those who run the service ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from dragoman.serve.connection import Connection
from dragoman.serve.pages import page_routes
from dragoman.serve.protocol import Close
from dragoman.serve.room_routes import room_routes
from dragoman.serve.service import Service
from dragoman.serve.settings import may_enter, origin_allowed


def make_app(service: Service) -> Starlette:
    """The application of one service."""

    @asynccontextmanager
    async def working(app: Starlette) -> AsyncIterator[None]:
        scheduler = asyncio.create_task(service.scheduler.run())
        yield
        scheduler.cancel()
        with suppress(asyncio.CancelledError):
            await scheduler

    async def interpret(socket: WebSocket) -> None:
        headers = socket.headers
        if not origin_allowed(service.settings, headers.get("origin"), headers.get("host")):
            service.metrics.refused.labels("origin").inc()
            await socket.close(Close.ORIGIN)  # before it is accepted: the handshake answers 403
            return
        await Connection(service, socket).serve()

    async def health(request: Request) -> Response:
        """200 if another talk would be let in; which is what a balancer wants to know."""
        status = service.status
        body = {"status": status, "streams": service.streams, "most": service.settings.streams}
        return JSONResponse(body, 200 if status == "ready" else 503)

    async def metrics(request: Request) -> Response:
        offered = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not may_enter(service.settings, offered):
            return PlainTextResponse("This needs the access token.\n", 401)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return Starlette(
        routes=[
            *page_routes(service),
            *room_routes(service),
            WebSocketRoute("/v1/interpret", interpret),
            Route("/health", health),
            Route("/metrics", metrics),
        ],
        lifespan=working,
    )
