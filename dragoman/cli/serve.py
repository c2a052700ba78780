"""`dragoman serve`: one model for many streams, in a page and over WebSockets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.corpus_options import cluster_option
from dragoman.cli.ranges import REPLICAS, Number
from dragoman.cli.setup_options import AUTO, read_system, setup_options
from dragoman.errors import DragomanError

_voice = grouped("Voice")
_network = grouped("Network")
_limits = grouped("Limits")
_FILE = click.Path(path_type=Path)
_SECONDS = Number(min=0, min_open=True)
PAUSE_MS = 800.0
TOKEN, SECRET = "DRAGOMAN_TOKEN", "DRAGOMAN_SECRET"


@click.command(cls=GroupedCommand)
@setup_options
@_voice(
    "--voice",
    metavar="NAME",
    help="Who speaks the translation for those who ask for it (default: the best that is ready).",
)
@_network("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@_network("--port", type=click.IntRange(0, 65535), default=8020, show_default=True,
          help="Port to listen on; 0 takes one that is free.")  # fmt: skip
@_network(
    "--token-file",
    type=_FILE,
    metavar="FILE",
    help=f"Who comes in must know what this file holds (or ${TOKEN}).",
)
@_network(
    "--secret-file",
    type=_FILE,
    metavar="FILE",
    help=f"Shared by processes that go on with each other's talks (or ${SECRET}).",
)
@_network(
    "--peer",
    multiple=True,
    metavar="URL",
    help="Another process with this secret, or a name of them all: a room is found in any.",
)
@_network("--origin", multiple=True, metavar="URL", help="Another site whose pages may connect.")
@_network(
    "--captions-to",
    multiple=True,
    metavar="URL",
    help="Clients may have captions posted to addresses that begin so.",
)
@_network("--tls-cert", type=_FILE, metavar="FILE", help="Certificate, to serve wss.")
@_network("--tls-key", type=_FILE, metavar="FILE", help="Its key.")
@_network(
    "--proxy",
    multiple=True,
    metavar="ADDRESS",
    help="A proxy, or a network of them, that tells the addresses of clients; '*': any.",
)
@_limits("--streams", type=click.IntRange(1), default=4, show_default=True, help="Talks at once.")
@_limits(
    "--listeners", type=click.IntRange(1), default=500, show_default=True, help="In all rooms."
)
@_limits(
    "--batch",
    type=click.IntRange(1),
    help="Talks in a step.  [default: all on a GPU, one on a CPU]",
)
@_limits(
    "--lanes",
    type=click.IntRange(1, 64),
    help="Steps at the same time, each on --threads threads.  "
    "[default: one per core, where a core keeps up with a talk]",
)
@_limits("--longest", type=_SECONDS, default=14400, show_default=True, help="Seconds of a talk.")
@_limits("--idle", type=_SECONDS, default=60, show_default=True, help="Seconds without a message.")
@_limits("--keep", type=_SECONDS, default=60, show_default=True, help="Seconds to come back.")
@_limits("--drain", type=_SECONDS, default=600, show_default=True, help="Seconds to finish.")
@_limits("--fastest", type=_SECONDS, default=8, show_default=True, help="Times live speed.")
@_limits(
    "--connects",
    type=click.IntRange(1),
    default=1200,
    show_default=True,
    help="Connections of an address in a minute.",
)
@cluster_option("Cluster", "Replicas on a Ray cluster, or several here (docs/cluster.md).")
@grouped("Cluster")(
    "--replicas", type=REPLICAS, metavar="N[-M]", help="How many: 2 (default), or 2-8."
)
def command(
    voice: str | None,
    host: str,
    port: int,
    token_file: Path | None,
    secret_file: Path | None,
    peer: tuple[str, ...],
    origin: tuple[str, ...],
    captions_to: tuple[str, ...],
    tls_cert: Path | None,
    tls_key: Path | None,
    proxy: tuple[str, ...],
    streams: int,
    listeners: int,
    batch: int | None,
    lanes: int | None,
    longest: float,
    idle: float,
    keep: float,
    drain: float,
    fastest: float,
    connects: int,
    cluster: str | None,
    replicas: tuple[int, int] | None,
    **options: Any,
) -> None:
    """Interpret for many at once: a page for browsers, and WebSockets (docs/protocol.md).

    SIGTERM or Ctrl-C: no more talks are let in, those that are going on finish, then it ends. A
    second one ends it at once.

    \b
    dragoman serve --from de                             # http://127.0.0.1:8020
    dragoman serve --host 0.0.0.0 --token-file secret    # for others, who know it
    """
    from dragoman.serve.lanes import talks_in_a_step, with_lanes
    from dragoman.serve.logs import log_to_stderr
    from dragoman.serve.run import allow_many_connections, bound, check_tls, make_server
    from dragoman.serve.service import Service
    from dragoman.serve.settings import Settings, is_loopback
    from dragoman.store.overview import cores
    from dragoman.voices.registry import check_name

    token = _read_secret("token", token_file, TOKEN)
    if token is None and not is_loopback(host):
        raise DragomanError(
            f"Whoever reaches {host} could come in; set {TOKEN}, or give --token-file FILE."
        )
    if (tls_cert is None) != (tls_key is None):
        raise DragomanError("--tls-cert and --tls-key go together.")
    if tls_cert is not None and tls_key is not None:
        check_tls(tls_cert, tls_key)
    if replicas is not None and cluster is None:
        raise DragomanError("--replicas are those of a cluster; give --cluster, too.")
    for option, addresses in (("--origin", origin), ("--captions-to", captions_to)):
        _check_addresses(option, addresses)
    secret = _read_secret("secret", secret_file, SECRET)
    _check_peers(peer, secret, cluster)
    _check_proxies(proxy)
    if voice is not None:
        check_name(voice)
    if lanes is not None and lanes > 1 and options.get("threads") is None:
        options["threads"] = max(1, cores() // lanes)
    system = read_system(lambda text: click.echo(text, err=True), pause_ms=PAUSE_MS, **options)
    if lanes is None and cluster is None and options.get("max_latency") != AUTO:
        system, lanes = with_lanes(system, streams)
    lanes = lanes or 1
    settings = Settings(
        streams=streams,
        batch=batch or talks_in_a_step(system, streams),
        lanes=lanes,
        longest=longest,
        idle=idle,
        keep=keep,
        drain=drain,
        fastest=fastest,
        connects=connects,
        token=token,
        origins=tuple(one.rstrip("/").lower() for one in origin),  # as browsers write them
        proxies=proxy,
        captions_to=captions_to,
        secret=secret,
        peers=tuple(one.rstrip("/") for one in peer),
        listeners=listeners,
        voice=voice,
    )

    def ready(port: int) -> None:
        scheme = "http" if tls_cert is None else "https"
        name = f"[{host.strip('[]')}]" if ":" in host else host
        click.echo(f"Ready on {scheme}://{name}:{port}/", err=True)

    loading = f"Loading {system.setup.model} …"
    if cluster is not None:
        from dragoman.serve.cluster import Place, serve_on

        click.echo(loading, err=True)
        place = Place(cluster, host, port, replicas or (2, 2), tls_cert, tls_key)
        serve_on(place, system.setup, settings, ready)
        return
    server = make_server(Service(system, settings), tls_cert, tls_key)
    with bound(host, port) as address:
        click.echo(loading, err=True)
        system.model, system.vad  # noqa: B018  before anybody connects
        if lanes > 1 and getattr(system.model, "device", "cpu") != "cpu":
            raise DragomanError("A GPU has one lane; give it larger steps by --batch instead.")
        allow_many_connections()
        address.listen()
        ready(address.getsockname()[1])
        log_to_stderr()
        server.run(sockets=[address])


def _check_addresses(option: str, addresses: Sequence[str]) -> None:
    """Refuse what no address begins with: nobody would be let in, and nobody would know why."""
    for address in addresses:
        if option != "--captions-to" and address.rstrip("/").count("/") > 2:
            raise DragomanError(
                f"{option} takes a site, like https://talks.example; not '{address}'."
            )
        if not address.startswith(("http://", "https://")):
            raise DragomanError(
                f"{option} takes an address that begins with https:// or http://, not '{address}'."
            )


def _check_peers(peers: Sequence[str], secret: str | None, cluster: str | None) -> None:
    """Refuse what no other process is found by, and what it would not answer."""
    _check_addresses("--peer", peers)
    for peer in peers:
        try:
            parts = urlsplit(peer)
            named = bool(parts.hostname) and parts.port != 0
        except ValueError:
            named = False
        if not named:
            raise DragomanError(
                f"--peer takes an address like http://interpreter:8020, not '{peer}'."
            )
    if peers and cluster is not None:
        raise DragomanError("--peer is for single processes; a cluster has one place for rooms.")
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
    else:
        try:
            text = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise DragomanError(f"Cannot read the {what} in {file}: {error}.") from error
    if text is not None and len(text) < 16:
        raise DragomanError(
            f"A {what} has at least 16 characters; make one with "
            "'python -c \"import secrets; print(secrets.token_urlsafe())\"'."
        )
    return text
