"""The options of `dragoman serve` that say who may come in, and how much a client may ask for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dragoman.cli.app import grouped
from dragoman.cli.ranges import COUNT, PATH, Number
from dragoman.errors import DragomanError
from dragoman.serve.settings import Settings

TOKEN, SECRET = "DRAGOMAN_TOKEN", "DRAGOMAN_SECRET"
_voice = grouped("Voice")
_network = grouped("Network")
_limits = grouped("Limits")
_SECONDS = Number(min=0, min_open=True)

_OPTIONS = {
    "voice": _voice(
        "--voice",
        metavar="NAME",
        help="Voice for those who want to hear the translation (default: the best that is ready).",
    ),
    "token_file": _network(
        "--token-file",
        type=PATH,
        metavar="FILE",
        help=f"File with the token that clients must send (or ${TOKEN}).",
    ),
    "secret_file": _network(
        "--secret-file",
        type=PATH,
        metavar="FILE",
        help=f"Secret of processes that go on with each other's talks (or ${SECRET}).",
    ),
    "peers": _network(
        "--peer",
        "peers",
        multiple=True,
        metavar="URL",
        help="Another process with this secret, or a name for all of them; each finds all rooms.",
    ),
    "origins": _network(
        "--origin",
        "origins",
        multiple=True,
        metavar="URL",
        help="Another site whose pages may connect.",
    ),
    "captions_to": _network(
        "--captions-to",
        multiple=True,
        metavar="URL",
        help="Clients may have captions posted to addresses that begin like this.",
    ),
    "proxies": _network(
        "--proxy",
        "proxies",
        multiple=True,
        metavar="ADDRESS",
        help="A proxy, or a network of them, to believe where clients come from; '*': any.",
    ),
    "streams": _limits("--streams", type=COUNT, default=4, help="Talks at once."),
    "listeners": _limits("--listeners", type=COUNT, default=500, help="Listeners in all rooms."),
    "longest": _limits(
        "--longest", type=_SECONDS, default=14400, help="Seconds that a talk may last."
    ),
    "idle": _limits(
        "--idle", type=_SECONDS, default=60, help="Seconds that a client may be silent."
    ),
    "keep": _limits("--keep", type=_SECONDS, default=60, help="Seconds to come back after a loss."),
    "drain": _limits("--drain", type=_SECONDS, default=600, help="Seconds for talks to finish."),
    "fastest": _limits("--fastest", type=_SECONDS, default=8, help="Times live speed, at most."),
    "connects": _limits(
        "--connects", type=COUNT, default=1200, help="Connections from an address in a minute."
    ),
}


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Settings`, which it gets as its argument `settings`."""

    @wraps(command)
    def with_settings(**values: Any) -> None:
        own = {name: values.pop(name) for name in _OPTIONS}
        command(settings=_settings(**own), **values)

    decorated: Callable[..., None] = with_settings
    for option in reversed(_OPTIONS.values()):
        decorated = option(decorated)
    return decorated


def _settings(
    token_file: Path | None,
    secret_file: Path | None,
    peers: Sequence[str],
    origins: Sequence[str],
    captions_to: tuple[str, ...],
    proxies: tuple[str, ...],
    voice: str | None,
    **limits: Any,
) -> Settings:
    from dragoman.voices.registry import check_name

    _check_addresses("--origin", origins)
    _check_addresses("--captions-to", captions_to)
    token = _read_secret("token", token_file, TOKEN)
    secret = _read_secret("secret", secret_file, SECRET)
    _check_peers(peers, secret)
    _check_proxies(proxies)
    if voice is not None:
        check_name(voice)
    return Settings(
        token=token,
        secret=secret,
        peers=tuple(one.rstrip("/") for one in peers),
        origins=tuple(one.rstrip("/").lower() for one in origins),  # as browsers write them
        captions_to=captions_to,
        proxies=proxies,
        voice=voice,
        **limits,
    )


def _check_addresses(option: str, addresses: Sequence[str]) -> None:
    """Refuse what no address begins with: nobody would be let in, and nobody would know why."""
    for address in addresses:
        if not address.startswith(("http://", "https://")):
            raise DragomanError(
                f"{option} takes an address that begins with https:// or http://, not '{address}'."
            )
        if option != "--captions-to" and not _is_site(address):
            raise DragomanError(
                f"{option} takes a site, like https://talks.example:8020; not '{address}'."
            )


def _is_site(address: str) -> bool:
    """Whether it is a host, maybe with a port, and nothing besides."""
    try:
        parts = urlsplit(address.rstrip("/"))
        besides = parts.path or parts.query or parts.fragment
        return bool(parts.hostname) and parts.port != 0 and not besides
    except ValueError:  # such as '[x', or port 99999
        return False


def _check_peers(peers: Sequence[str], secret: str | None) -> None:
    """Refuse what no other process is found by, and what it would not answer."""
    _check_addresses("--peer", peers)
    if peers and secret is None:
        raise DragomanError(
            f"A --peer answers who shares its secret; set {SECRET}, or give --secret-file FILE."
        )


def _check_proxies(proxies: Sequence[str]) -> None:
    """Refuse what is no address: it would be believed of nobody."""
    for proxy in proxies:
        try:
            if proxy != "*":
                ip_network(proxy)
        except ValueError:
            raise DragomanError(
                f"--proxy takes an address like 10.0.0.7, a network like 10.0.0.0/8, or '*', "
                f"not '{proxy}'."
            ) from None


def _read_secret(what: str, file: Path | None, variable: str) -> str | None:
    """What others must know; never an option, which every user of the machine could read."""
    if file is None:
        text = os.environ.get(variable)
        text = text and text.strip()  # no header could hold it
    else:
        try:
            text = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", "this is no text")
            raise DragomanError(f"Cannot read the {what} in {file}: {why}.") from error
    if text is not None and len(text) < 16:
        raise DragomanError(
            f"The {what} in {file or variable} has {len(text)} of at least 16 characters; make "
            "one with "
            "'python -c \"import secrets; print(secrets.token_urlsafe())\"'."
        )
    return text
