"""Rooms over the web: opened, spoken in, listened to, and taken home as files."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from dragoman.serve.connection import Connection
from dragoman.serve.doors import RoomDoor, note_stranger, turn_away
from dragoman.serve.downloads import FILES
from dragoman.serve.listening import Listening
from dragoman.serve.logs import note
from dragoman.serve.peers import Peers
from dragoman.serve.places import PATH
from dragoman.serve.room_keys import Role, new_room
from dragoman.serve.service import Service
from dragoman.serve.settings import may_enter, offered_token, origin_allowed

_FRESH = {"Cache-Control": "no-store"}
_STRANGER = (
    "This page counts as another site's. Whoever runs the server can let it in; the server's log "
    "says what it was taken for."
)
_SPEAKERS = "This needs the speaker's token of the room."


class RoomRoutes:
    """What can be asked of the rooms of a service and of those of its peers."""

    def __init__(self, service: Service, peers: Peers) -> None:
        self._service, self._peers = service, peers
        self._rooms, self._settings = service.rooms, service.settings

    @property
    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1/rooms", self._open, methods=["POST"]),
            WebSocketRoute("/v1/rooms/{room}/speak", self._speak),
            WebSocketRoute("/v1/rooms/{room}/listen", self._listen),
            WebSocketRoute(PATH, self._peers.answer),
            Route("/v1/rooms/{room}/audience", self._audience),
            Route("/v1/rooms/{room}/leave", self._leave, methods=["POST"]),
            Route("/v1/rooms/{room}/{file}", self._download),
        ]

    async def _open(self, request: Request) -> Response:
        """A new room and its two tokens, for who has the server's."""
        if not origin_allowed(self._settings, request.headers):
            note_stranger(self._service, request.headers)
            return _refused(_STRANGER, 403)
        if not may_enter(self._settings, offered_token(request.headers)):
            return _refused("This needs the access token.", 401)
        name, keys = new_room(), self._rooms.keys
        note("room", room=name)
        body = {
            "room": name,
            "speaker_token": keys.token(name, Role.SPEAKER),
            "listener_token": keys.token(name, Role.LISTENER),
        }
        return JSONResponse(body, headers=_FRESH)

    async def _speak(self, socket: WebSocket) -> None:
        name = socket.path_params["room"]
        if not await self._welcome(socket):
            return
        sent = self._peers.sent(socket)
        door = RoomDoor(self._service, name, self._peers, sent)
        try:
            await Connection(self._service, socket, door=door, sent=sent).serve()
        finally:
            door.left()

    async def _listen(self, socket: WebSocket) -> None:
        name = socket.path_params["room"]
        if await self._welcome(socket):
            sent = self._peers.sent(socket)
            await Listening(self._service, socket, name, self._peers, sent).serve()

    async def _welcome(self, socket: WebSocket) -> bool:
        """Whether a socket may ask for a room; who may not is turned away. A name that is none is
        refused later, as a wrong token is: there is none that fits it."""
        welcome = origin_allowed(self._settings, socket.headers)
        if not welcome:
            await turn_away(self._service, socket)
        return welcome

    async def _audience(self, request: Request) -> Response:
        """How many listen, for the speaker, who is told while a talk goes on, but not else."""
        name = request.path_params["room"]
        if not self._rooms.keys.admits(name, Role.SPEAKER, offered_token(request.headers)):
            return _refused(_SPEAKERS, 401)
        body = {"type": "audience", "listeners": await self._peers.audience(name)}
        return JSONResponse(body, headers=_FRESH)

    async def _leave(self, request: Request) -> Response:
        """The speaker is gone for good. Said apart from the socket: as a page is closed, what it
        writes there may be lost."""
        name, talk = request.path_params["room"], request.query_params.get("session", "")
        if not self._rooms.keys.admits(name, Role.SPEAKER, offered_token(request.headers)):
            return _refused(_SPEAKERS, 401)
        if not await self._peers.leave(name, talk):
            return _refused("There is no such talk in this room, or it is over.", 404)
        return Response(status_code=204)

    async def _download(self, request: Request) -> Response:
        """What was said so far in the last talk of a room."""
        name, file = request.path_params["room"], request.path_params["file"]
        if not self._rooms.may_listen(name, offered_token(request.headers)):
            return _refused("This needs the token of the room.", 401)
        if file not in FILES:
            return _refused(f"There are {', '.join(FILES)}.", 404)
        place = await self._peers.holder(name)
        if place is None:
            text: str | None = await self._rooms.enter(name).file(file)
        else:
            text = await self._peers.file(place, name, file)
        if text is None:
            return _refused("The process that has this room does not answer; try again.", 503)
        return Response(text, media_type=FILES[file].media_type, headers=_FRESH)


def _refused(sentence: str, status: int) -> Response:
    return PlainTextResponse(f"{sentence}\n", status)
