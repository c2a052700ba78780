"""Where the processes beside this one are, and what they ask each other."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass
from functools import cache, lru_cache
from socket import SOCK_STREAM
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

PATH = "/v1/peers"
HEADER = "Dragoman-Peer"
NEW = "Dragoman-New"
"""Says that a talk is to begin: the handshake is refused if there is no place for it."""
PATIENCE = 2.0  # seconds for an answer; who has none by then counts as gone


class Holding(Struct, frozen=True):
    """What a process has of a room in which somebody has spoken."""

    since: float  # when the speaker last came there; the latest has the room
    talk: str  # its session, if it can be resumed there
    live: bool  # it goes on


class Question(Struct, frozen=True):
    """What do you have of these rooms, and have you this talk? Or: let me have this file of the
    first of them. Or: the speaker of this talk, in the first of them, has left."""

    rooms: list[str]
    file: str | None = None
    talk: str = ""
    left: bool = False


class Answer(Struct, frozen=True):
    """Of the rooms that were asked for, those that are known."""

    process: str
    ready: bool  # another talk would be let in
    rooms: dict[str, Holding]
    listeners: dict[str, int] = {}  # in rooms, also in those where nobody has spoken yet
    keeps: bool = False  # the talk can be resumed there


@dataclass(frozen=True, slots=True)
class Place:
    """The address of a process; several may have one name."""

    url: str
    host: str
    port: int
    key: str
    sibling: bool = False  # a process of this machine that has the same parent

    def tls(self) -> ssl.SSLContext | None:
        if not self.url.startswith("wss:"):
            return None
        return _unnamed() if self.sibling else _trusting(_trusted())

    def connect(self, path: str, *, new: bool = False, token: str | None = None) -> connect:
        """A connection to it, to be opened; `new`: for a talk that is to begin. `token`: what the
        client offers for whom it is."""
        headers = {HEADER: self.key} | ({NEW: "talk"} if new else {})
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return connect(
            self.url + path,
            host=self.host,
            port=self.port,
            additional_headers=headers,
            ssl=self.tls(),
            compression=None,
            max_size=None,
            proxy=None,
            ping_interval=None,  # whether it is there is asked apart: see relay.py
            open_timeout=PATIENCE,
            close_timeout=PATIENCE,
        )


@cache
def _unnamed() -> ssl.SSLContext:
    """A certificate names the machine as others know it, and not one of its processes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@lru_cache(maxsize=1)
def _trusting(trusted: tuple[tuple[str, int], ...]) -> ssl.SSLContext:
    """Read again only where others are `trusted`: it takes a tenth of a second, in which nobody is
    served, and peers are asked every second."""
    return ssl.create_default_context()


def _trusted() -> tuple[tuple[str, int], ...]:
    """Where it stands whom this machine trusts, and since when."""
    paths = ssl.get_default_verify_paths()
    there = [path for path in (paths.cafile, paths.capath) if path is not None]
    return tuple((path, os.stat(path).st_mtime_ns) for path in there)


async def ask(place: Place, question: Question) -> Answer | None:
    reply = await exchange(place, question)
    try:
        return None if reply is None else msgspec.json.decode(reply, type=Answer)
    except msgspec.MsgspecError:  # it is of another version
        return None


async def exchange(place: Place, question: Question, patience: float | None = None) -> str | None:
    try:
        async with asyncio.timeout(patience or PATIENCE), place.connect(PATH) as socket:
            await socket.send(msgspec.json.encode(question).decode())
            reply = await socket.recv()
            return reply if isinstance(reply, str) else None
    except (OSError, TimeoutError, WebSocketException):
        return None


async def addresses(url: str) -> list[tuple[str, int]]:
    """All addresses of a name."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(PATIENCE):
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(parts.hostname, port, type=SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):  # nobody has this name, or not now
        return []
    return [(str(address[0]), port) for *_, address in found]
