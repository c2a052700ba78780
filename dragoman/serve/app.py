"""The web application: the socket, and what those who run the service ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from dragoman.serve.connection import Connection, ended
from dragoman.serve.deepgram import Deepgram
from dragoman.serve.dialect import Dialect, Native
from dragoman.serve.openai_files import answer_file
from dragoman.serve.openai_realtime import OpenAIRealtime
from dragoman.serve.pages import page_routes
from dragoman.serve.peers import Peers
from dragoman.serve.protocol import Close
from dragoman.serve.room_routes import room_routes
from dragoman.serve.service import Service
from dragoman.serve.settings import may_enter, origin_allowed


class Beside(Protocol):
    """The figures of those who serve beside this process, as one."""

    async def run(self, figures: Callable[[], str]) -> None:
        """Let them have ours, for ever."""

    async def all(self, own: str) -> str:
        """Ours, as they are now, and theirs."""


def make_app(service: Service, beside: Beside | None = None) -> Starlette:
    """The application of one service."""
    peers = Peers(service)

    @asynccontextmanager
    async def working(app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(work) for work in (service.scheduler.run(), peers.run())]
        if beside is not None:
            tasks.append(asyncio.create_task(beside.run(figures)))
        yield
        await ended(*tasks)

    def figures() -> str:
        service.metrics.tasks.set(len(asyncio.all_tasks()))
        service.metrics.listeners.set(service.rooms.listeners)
        service.metrics.led.set(service.rooms.led)
        return service.metrics.text()

    def speaking(dialect: type[Dialect]) -> Callable[[WebSocket], Awaitable[None]]:
        async def interpret(socket: WebSocket) -> None:
            headers = socket.headers
            if not origin_allowed(service.settings, headers.get("origin"), headers.get("host")):
                service.metrics.refused.labels("origin").inc()
                await socket.close(Close.ORIGIN)  # before it is accepted: the answer is a 403
                return
            await Connection(service, socket, dialect).serve()

        return interpret

    async def health(request: Request) -> Response:
        """200 if another talk would be let in; which is what a balancer wants to know. With
        `?full=ok` also if those that are going on can be followed."""
        status = service.status
        body = {"status": status, "streams": service.streams, "most": service.settings.streams}
        well = status == "ready" or (status == "full" and request.query_params.get("full") == "ok")
        return JSONResponse(body, 200 if well else 503)

    async def metrics(request: Request) -> Response:
        offered = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not may_enter(service.settings, offered):
            return PlainTextResponse("This needs the access token.\n", 401)
        text = figures() if beside is None else await beside.all(figures())
        return Response(text, media_type="text/plain; version=0.0.4")

    async def transcriptions(request: Request) -> Response:
        return await answer_file(service, request, translate=False)

    async def translations(request: Request) -> Response:
        return await answer_file(service, request, translate=True)

    return Starlette(
        routes=[
            *page_routes(service),
            *room_routes(service, peers),
            WebSocketRoute("/v1/interpret", speaking(Native)),
            WebSocketRoute("/v1/listen", speaking(Deepgram)),
            WebSocketRoute("/v1/realtime/translations", speaking(OpenAIRealtime)),
            Route("/v1/audio/transcriptions", transcriptions, methods=["POST"]),
            Route("/v1/audio/translations", translations, methods=["POST"]),
            Route("/health", health),
            Route("/metrics", metrics),
        ],
        lifespan=working,
    )
