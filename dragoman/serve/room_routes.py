"""Rooms over the web: opened, spoken in, listened to, and taken home as files."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from dragoman.serve.connection import Connection
from dragoman.serve.doors import RoomDoor
from dragoman.serve.downloads import FILES
from dragoman.serve.listening import Listening
from dragoman.serve.logs import note
from dragoman.serve.peers import PATH, Peers
from dragoman.serve.protocol import Close
from dragoman.serve.rooms import Role, is_room, new_room
from dragoman.serve.service import Service
from dragoman.serve.settings import may_enter, origin_allowed


def room_routes(service: Service, peers: Peers) -> list[BaseRoute]:
    rooms, settings = service.rooms, service.settings

    def is_ours(request: Request | WebSocket) -> bool:
        headers = request.headers
        return origin_allowed(settings, headers.get("origin"), headers.get("host"))

    async def open_room(request: Request) -> Response:
        """A new room and its two tokens, for who has the server's."""
        if not is_ours(request):
            return _refused("This page is not of this server.", 403)
        if not may_enter(settings, _offered(request)):
            return _refused("This needs the access token.", 401)
        name = new_room()
        note("room", room=name)
        return JSONResponse(
            {
                "room": name,
                "speaker_token": rooms.keys.token(name, Role.SPEAKER),
                "listener_token": rooms.keys.token(name, Role.LISTENER),
            },
            headers={"Cache-Control": "no-store"},
        )

    async def speak(socket: WebSocket) -> None:
        name = socket.path_params["room"]
        if not await _welcome(socket, name):
            return
        sent = peers.sent(socket)
        door = RoomDoor(rooms, name, peers, sent)
        try:
            await Connection(service, socket, door=door, sent=sent).serve()
        finally:
            door.left()

    async def listen(socket: WebSocket) -> None:
        name = socket.path_params["room"]
        if await _welcome(socket, name):
            await Listening(service, socket, name, peers, peers.sent(socket)).serve()

    async def _welcome(socket: WebSocket, name: str) -> bool:
        """Whether a socket may ask for a room; if not, the handshake answers 403."""
        welcome = is_ours(socket) and is_room(name)
        if not welcome:
            service.metrics.refused.labels("origin").inc()
            await socket.close(Close.ORIGIN)
        return welcome

    async def download(request: Request) -> Response:
        """What was said so far in the last talk of a room."""
        name, file = request.path_params["room"], request.path_params["file"]
        if not rooms.may_listen(name, _offered(request)):
            return _refused("This needs the token of the room.", 401)
        if file not in FILES:
            return _refused(f"There are {', '.join(FILES)}.", 404)
        place = await peers.holder(name)
        text = await (
            rooms.enter(name).file(file) if place is None else peers.file(place, name, file)
        )
        if text is None:
            return _refused("The process that has this room does not answer; try again.", 503)
        return Response(
            text, media_type=FILES[file].media_type, headers={"Cache-Control": "no-store"}
        )

    return [
        Route("/v1/rooms", open_room, methods=["POST"]),
        WebSocketRoute("/v1/rooms/{room}/speak", speak),
        WebSocketRoute("/v1/rooms/{room}/listen", listen),
        WebSocketRoute(PATH, peers.answer),
        Route("/v1/rooms/{room}/{file}", download),
    ]


def _offered(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _refused(sentence: str, status: int) -> Response:
    return PlainTextResponse(f"{sentence}\n", status)
