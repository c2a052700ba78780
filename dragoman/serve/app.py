"""The web application: the socket, and what those who run the service ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Protocol

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from dragoman.serve.connection import Connection
from dragoman.serve.deepgram import Deepgram
from dragoman.serve.dialect import Dialect, Native
from dragoman.serve.doors import FrontDoor, turn_away
from dragoman.serve.openai_files import answer_file, answer_model, answer_models
from dragoman.serve.openai_realtime import OpenAIRealtime
from dragoman.serve.pages import page_routes
from dragoman.serve.patience import InPieces
from dragoman.serve.peers import Peers
from dragoman.serve.places import NEW
from dragoman.serve.protocol import Close
from dragoman.serve.room_routes import RoomRoutes
from dragoman.serve.service import Service
from dragoman.serve.settings import may_enter, offered_token, origin_allowed
from dragoman.serve.tasks import ended


class Beside(Protocol):
    """The figures of those who serve beside this process, as one."""

    async def run(self, figures: Callable[[], str]) -> None:
        """Let them have ours, for ever."""

    async def all(self, own: str) -> str:
        """Ours, as they are now, and theirs."""


class _Routes:
    """What clients, balancers and whoever watches the service ask of it."""

    def __init__(self, service: Service, peers: Peers, beside: Beside | None) -> None:
        self._service, self._peers, self._beside = service, peers, beside

    @property
    def routes(self) -> list[BaseRoute]:
        return [
            WebSocketRoute("/v1/interpret", self._speaking(Native)),
            WebSocketRoute("/v1/listen", self._speaking(Deepgram)),
            WebSocketRoute("/v1/realtime/translations", self._speaking(OpenAIRealtime)),
            Route("/v1/audio/transcriptions", self._transcriptions, methods=["POST"]),
            Route("/v1/audio/translations", self._translations, methods=["POST"]),
            Route("/v1/models", self._models),
            Route("/v1/models/{name:path}", self._model),
            Route("/health", self._health),
            Route("/metrics", self._metrics),
        ]

    def figures(self) -> str:
        """Of this process, as they are now."""
        metrics, rooms = self._service.metrics, self._service.rooms
        metrics.tasks.set(len(asyncio.all_tasks()))
        metrics.listeners.set(rooms.listeners)
        metrics.led.set(rooms.led)
        return metrics.text()

    def _speaking(self, dialect: type[Dialect]) -> Callable[[WebSocket], Awaitable[None]]:
        async def interpret(socket: WebSocket) -> None:
            if not origin_allowed(self._service.settings, socket.headers):
                await turn_away(self._service, socket)
                return
            sent = self._peers.sent(socket)
            door, promise = FrontDoor(self._service, self._peers, sent), ExitStack()
            if sent and NEW in socket.headers:
                if self._service.status != "ready":
                    await socket.close(Close.TRY_LATER)  # who sent it tries another
                    return
                promise.enter_context(self._service.place_kept())
            await Connection(self._service, socket, dialect, door, sent, promise).serve()

        return interpret

    async def _transcriptions(self, request: Request) -> Response:
        return await answer_file(self._service, self._peers, request, translate=False)

    async def _translations(self, request: Request) -> Response:
        return await answer_file(self._service, self._peers, request, translate=True)

    async def _models(self, request: Request) -> Response:
        return answer_models(self._service, request)

    async def _model(self, request: Request) -> Response:
        return answer_model(self._service, request, request.path_params["name"])

    async def _health(self, request: Request) -> Response:
        """200 if another talk would be let in; which is what a balancer wants to know. With
        `?full=ok` also if those that are going on can be followed."""
        status, streams = self._service.status, self._service.streams
        body = {"status": status, "streams": streams, "most": self._service.settings.streams}
        well = status == "ready" or (status == "full" and request.query_params.get("full") == "ok")
        return JSONResponse(body, 200 if well else 503)

    async def _metrics(self, request: Request) -> Response:
        if not may_enter(self._service.settings, offered_token(request.headers)):
            return PlainTextResponse("This needs the access token.\n", 401)
        text = self.figures()
        if self._beside is not None:
            text = await self._beside.all(text)
        return Response(text, media_type="text/plain; version=0.0.4")


def make_app(service: Service, beside: Beside | None = None) -> Starlette:
    """The application of one service."""
    peers = Peers(service)
    own = _Routes(service, peers, beside)

    @asynccontextmanager
    async def working(app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(work) for work in (service.scheduler.run(), peers.run())]
        if beside is not None:
            tasks.append(asyncio.create_task(beside.run(own.figures)))
        yield
        await ended(*tasks)

    routes = [*page_routes(service), *RoomRoutes(service, peers).routes, *own.routes]
    middleware = [Middleware(InPieces), *_for_friends(service.settings.origins)]
    return Starlette(routes=routes, middleware=middleware, lifespan=working)


def _for_friends(origins: Sequence[str]) -> list[Middleware]:
    """Pages of other sites that may connect: browsers ask first, and hand them no answer that does
    not name them."""
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    ]
