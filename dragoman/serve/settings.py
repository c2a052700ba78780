"""Who may come in, and how much a client may ask for."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of the service. Times are seconds."""

    streams: int = 4
    batch: int = 8  # streams that are stepped together
    lanes: int = 1  # batches that are stepped at the same time
    apart: bool = False  # files are stepped by a thread of their own
    longest: float = 4 * 3600.0  # a talk
    idle: float = 60.0  # without a message from the client
    keep: float = 60.0  # a talk without a connection, and a finished one
    drain: float = 600.0  # how long talks may go on once the process is asked to end
    fastest: float = 8.0  # times as fast as it is spoken that sound may come
    connects: int = 1200  # of one address, in a minute: an audience may share one
    proxies: tuple[str, ...] = ()  # whose word counts on which address a client has
    token: str | None = None
    origins: tuple[str, ...] = ()  # pages of other hosts that may connect
    listeners: int = 500  # in all rooms together
    voice: str | None = None  # that speaks the translation; None: the best that is ready
    captions_to: tuple[str, ...] = ()  # beginnings of addresses that captions may be posted to
    secret: str | None = None  # what processes share that go on with each other's talks
    peers: tuple[str, ...] = ()  # addresses of theirs, by which rooms are found
    siblings: tuple[str, ...] = ()  # the same of processes that one parent has started here


def is_loopback(host: str) -> bool:
    """Whether a host is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def offered_token(headers: Mapping[str, str], kinds: Collection[str] = ("bearer",)) -> str | None:
    """What somebody offers to be let in, in the header `Authorization`, after one of these words:
    in large letters or small, clients differ."""
    offered = headers.get("authorization", "").strip()
    kind, _, token = offered.partition(" ")
    return (token.strip() if kind.lower() in kinds else offered) or None


def may_enter(settings: Settings, offered: str | None) -> bool:
    """Whether a token is the right one; how long that takes tells nothing about it."""
    if settings.token is None:
        return True
    return hmac.compare_digest(settings.token.encode(), (offered or "").encode())


def origin_allowed(settings: Settings, headers: Mapping[str, str]) -> bool:
    """Whether the page that asks is ours or a friend; programs name no origin.

    Without a token only pages of this machine are ours: any name may be made to lead here.
    """
    origin, host = headers.get("origin"), headers.get("host", "")
    if origin is None or origin in settings.origins:
        return True
    try:
        page = urlsplit(origin)
        name = page.hostname or ""
    except ValueError:  # no address at all
        return False
    if page.netloc.lower() != host.lower():
        return False
    return settings.token is not None or is_loopback(name)
