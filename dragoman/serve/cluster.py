"""The same application on a Ray cluster: replicas of it behind Ray Serve, which starts them, sends
connections to them and starts others in place of those that die.

Who is let in, who comes back and what happens with too much work is decided in the application, as
everywhere: a replica that is full says so, and the client that tries again reaches another. Rooms
have one replica of their own, so that all who follow a talk meet.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.cluster import answer, check_room, connect
from dragoman.errors import DragomanError
from dragoman.serve.app import make_app
from dragoman.serve.board import Replica, take_down
from dragoman.serve.logs import log_to_stderr, note
from dragoman.serve.protocol import Close
from dragoman.serve.run import LARGEST, Address
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.setup import Setup, System

TALKS, ROOMS = "dragoman", "dragoman-rooms"
_GRACE = 10  # seconds after `drain`
_SPARE = 1000  # connections beside talks and listeners: pages, files, those that are refused


def serve_on(
    cluster: str,
    replicas: tuple[int, int],
    address: Address,
    setup: Setup,
    settings: Settings,
    ready: Callable[[int], None],
) -> None:
    """Serve until a signal comes, then let talks finish; `ready` is told the port.

    `replicas`: at least, and at most.
    """
    cores = setup.threads or 1
    setup = setup.with_changes(threads=cores)
    settings = replace(settings, secret=settings.secret or secrets.token_urlsafe())
    least, most = replicas
    here = max(os.cpu_count() or 1, cores * (most + 1))
    ray = connect(cluster, cores=here, logs=True)
    gpu = setup.device == "cuda"
    check_room(ray, least + 1, cores=cores, gpu=gpu)
    resources = {"num_cpus": cores, "num_gpus": int(gpu)}
    # A model that cannot be had is told in one sentence; later it would be a page for each replica.
    answer(ray, ray.remote(max_calls=1, **resources)(_load).remote(setup, os.getcwd()))
    from ray import serve

    with _serving(ray, serve, cluster, address) as port:
        talks = _application(serve, TALKS, setup, settings, resources)
        rooms = _application(serve, ROOMS, setup, settings, resources)
        try:
            serve.run(_scaled(talks, replicas, settings).bind(), name=TALKS)
            serve.run(rooms.bind(), name=ROOMS, route_prefix="/v1/rooms")
        except RuntimeError as error:  # whose text is a page long
            raise DragomanError("The replicas cannot start; why is said above.") from error
        with _signal() as ended:
            ready(port)
            log_to_stderr()
            ended.wait()
            note("draining")
            for name in (TALKS, ROOMS):
                serve.delete(name, _blocking=False)
            for name in (TALKS, ROOMS):
                serve.delete(name)


@contextmanager
def _serving(ray: Any, serve: Any, cluster: str, address: Address) -> Iterator[int]:
    """Ray Serve at an address, and its port; it belongs to the whole cluster."""
    with suppress(ValueError):
        ray.get_actor("SERVE_CONTROLLER_ACTOR", namespace="serve")
        raise DragomanError(
            f"The cluster '{cluster}' serves something already; "
            "'serve shutdown' on one of its machines ends that."
        )
    with address.bound() as socket:
        port = socket.getsockname()[1]
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    options = {
        "host": address.host.strip("[]"),
        "port": port,
        "ssl_certfile": address.cert and str(address.cert.absolute()),
        "ssl_keyfile": address.key and str(address.key.absolute()),
    }
    logs = {"log_level": "WARNING", "enable_access_log": False}
    try:
        try:
            serve.start(proxy_location="EveryNode", http_options=options, logging_config=logs)
        except ray.exceptions.RayError as error:  # it waits some seconds for its own processes
            raise DragomanError(
                "Ray Serve did not start; on a machine that has much else to do, try again."
            ) from error
        yield port
    finally:
        serve.shutdown()
        take_down(ray)
        ray.shutdown()


def _application(
    serve: Any, name: str, setup: Setup, settings: Settings, resources: dict[str, int]
) -> Any:
    """A deployment of one replica, which serves the whole application."""
    folder = os.getcwd()

    def build() -> ASGIApp:
        return replica(setup, settings, folder)

    return serve.deployment(
        serve.ingress(build)(),
        name=name,
        num_replicas=1,
        ray_actor_options=resources,
        # More than the application lets in: who is refused shall hear why.
        max_ongoing_requests=settings.streams + settings.listeners + _SPARE,
        graceful_shutdown_timeout_s=settings.drain + _GRACE,
        logging_config={"log_level": "WARNING", "enable_access_log": False},
    )


def _scaled(deployment: Any, replicas: tuple[int, int], settings: Settings) -> Any:
    """As many replicas as there are talks for, none of them much more than three quarters full."""
    least, most = replicas
    if least == most:
        return deployment.options(num_replicas=least)
    scaling = {
        "min_replicas": least,
        "max_replicas": most,
        "target_ongoing_requests": max(1.0, 0.75 * settings.streams),
        "upscale_delay_s": 5,
        "metrics_interval_s": 2,
        "look_back_period_s": 5,
        "downscale_delay_s": 300,
    }
    return deployment.options(num_replicas="auto", autoscaling_config=scaling)


def replica(setup: Setup, settings: Settings, folder: str) -> ASGIApp:
    """The application of one replica, its model loaded."""
    import ray

    log_to_stderr()
    return Front(make_app(Service(_loaded(setup, folder), settings), Replica(ray)))


def _loaded(setup: Setup, folder: str) -> System:
    """A system, its model loaded; a folder that is named by its relative path is looked for in the
    one in which the command was given, where it is there."""
    with suppress(OSError):
        os.chdir(folder)
    system = System(setup)
    system.model, system.vad  # noqa: B018  before anybody connects
    return system


def _load(setup: Setup, folder: str) -> None:
    """In a worker: see whether it can be done."""
    _loaded(setup, folder)


class Front:
    """The application as it is served without Ray: paths are whole, messages of a bounded size."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_some() -> Message:
            message = await receive()
            if len(message.get("bytes") or message.get("text") or "") <= LARGEST:
                return message
            await send({"type": "websocket.close", "code": Close.TOO_BIG})
            return {"type": "websocket.disconnect", "code": Close.TOO_BIG}

        sockets = scope["type"] == "websocket"
        await self._app({**scope, "root_path": ""}, receive_some if sockets else receive, send)


@contextmanager
def _signal() -> Iterator[threading.Event]:
    """Set by the first SIGTERM or Ctrl-C; the second ends the process."""
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        if ended.is_set():
            raise SystemExit(1)
        ended.set()

    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, end) for number in numbers]
    try:
        yield ended
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
