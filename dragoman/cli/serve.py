"""`dragoman serve`: one model for many streams, in a page and over WebSockets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.app import GroupedCommand, grouped
from dragoman.cli.corpus_options import cluster_option
from dragoman.cli.ranges import COUNT, PATH, REPLICAS, Whole
from dragoman.cli.serve_options import TOKEN, settings_options
from dragoman.cli.setup_options import AUTO, LIVE_PAUSE_MS, read_system, setup_options
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.serve.run import Address
    from dragoman.serve.settings import Settings
    from dragoman.setup import System

_network = grouped("Network")
_limits = grouped("Limits")
_cluster = grouped("Cluster")


@click.command(cls=GroupedCommand)
@setup_options
@_network("--host", default="127.0.0.1", help="Address to listen on.")
@_network("--port", type=Whole(0, 65535), default=8020,
          help="Port to listen on; 0 takes one that is free.")  # fmt: skip
@_network("--tls-cert", type=PATH, metavar="FILE", help="Certificate, to serve wss.")
@_network("--tls-key", type=PATH, metavar="FILE", help="Its key.")
@settings_options
@_limits("--batch", type=COUNT, help="Talks in a step.  [default: all on a GPU, one on a CPU]")
@_limits(
    "--lanes",
    type=Whole(1, 64),
    help="Steps at the same time, each on --threads threads.  "
    "[default: one per core, where a core keeps up with a talk]",
)
@_limits(
    "--processes",
    type=Whole(1, 64),
    default=1,
    help="Identical processes behind this address, each with --streams talks: for a GPU, which one "
    "core of Python does not keep busy.",
)
@cluster_option("Cluster", "Replicas on a Ray cluster, or several here (docs/cluster.md).")
@_cluster("--replicas", type=REPLICAS, metavar="N[-M]", help="How many: 2 (default), or 2-8.")
def command(
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    settings: Settings,
    batch: int | None,
    lanes: int | None,
    processes: int,
    cluster: str | None,
    replicas: tuple[int, int] | None,
    **options: Any,
) -> None:
    """Interpret for many at once: a page for browsers, and WebSockets (docs/protocol.md).

    After SIGTERM or Ctrl-C nobody new is let in, talks finish, and then it ends. A second one ends
    it at once.

    \b
    dragoman serve --from de                             # http://127.0.0.1:8020
    dragoman serve --host 0.0.0.0 --token-file secret    # for others who have it
    """
    from dragoman.serve.lanes import files_apart, talks_in_a_step
    from dragoman.serve.run import Address

    address = Address(host, port, tls_cert, tls_key)
    _check(address, settings, cluster, replicas, processes)
    system, lanes = _system(settings.streams, lanes, cluster, processes, options)
    batch = batch or talks_in_a_step(system, settings.streams)
    settings = replace(settings, batch=batch, lanes=lanes, apart=files_apart(system, lanes))

    def ready(port: int) -> None:
        click.echo(f"Ready on {address.url(port)}", err=True)

    if cluster is None and processes == 1:
        _serve_here(address, system, settings, ready)
    elif cluster is None:
        _serve_in(processes, address, system, settings, ready)
    else:
        from dragoman.serve.cluster import serve_on

        _tell_loading(system)
        serve_on(cluster, replicas or (2, 2), address, system.setup, settings, ready)


def _check(
    address: Address,
    settings: Settings,
    cluster: str | None,
    replicas: tuple[int, int] | None,
    processes: int,
) -> None:
    """Refuse what does not go together, before anything is loaded."""
    from dragoman.serve.settings import is_loopback

    if settings.token is None and not is_loopback(address.host):
        raise DragomanError(
            f"Anybody who reaches {address.host} could come in; set {TOKEN}, or give "
            "--token-file FILE."
        )
    address.check_tls()
    if replicas is not None and cluster is None:
        raise DragomanError("--replicas is for a cluster; give --cluster, too.")
    if processes > 1 and cluster is not None:
        raise DragomanError("--processes are those of this machine; a cluster has --replicas.")
    if settings.peers and cluster is not None:
        raise DragomanError("--peer is for single processes; a cluster has one place for rooms.")


def _system(
    streams: int, lanes: int | None, cluster: str | None, processes: int, options: dict[str, Any]
) -> tuple[System, int]:
    """What interprets, and how many lanes it has; they share the cores, as processes do."""
    from dragoman.serve.lanes import with_lanes
    from dragoman.store.overview import cores

    working = (lanes or 1) * processes
    if working > 1 and options.get("threads") is None:
        options["threads"] = max(1, cores() // working)
    system = read_system(lambda text: click.echo(text, err=True), pause_ms=LIVE_PAUSE_MS, **options)
    if lanes is None and cluster is None and processes == 1 and options.get("max_latency") != AUTO:
        return with_lanes(system, streams)
    return system, lanes or 1


def _serve_here(
    address: Address, system: System, settings: Settings, ready: Callable[[int], None]
) -> None:
    from dragoman.serve.lanes import load
    from dragoman.serve.logs import log_to_stderr
    from dragoman.serve.run import allow_many_connections, make_server
    from dragoman.serve.service import Service

    server = make_server(Service(system, settings), address.cert, address.key)
    with address.bound() as socket:
        _tell_loading(system)
        load(system, settings.lanes)
        allow_many_connections()
        socket.listen()
        ready(socket.getsockname()[1])
        log_to_stderr()
        server.run(sockets=[socket])


def _serve_in(
    processes: int,
    address: Address,
    system: System,
    settings: Settings,
    ready: Callable[[int], None],
) -> None:
    from dragoman.serve.several import check_sharing, serve_in

    check_sharing()

    def all_ready(port: int, own: list[int]) -> None:
        ports = ", ".join(map(str, own))
        click.echo(f"{processes} processes, by themselves on 127.0.0.1, ports {ports}", err=True)
        ready(port)

    _tell_loading(system)
    serve_in(processes, address, system.setup, settings, all_ready)


def _tell_loading(system: System) -> None:
    click.echo(f"Loading {system.setup.model} …", err=True)
