"""Machines that work together: a Ray cluster, found or started, and work spread over it.

`pip install 'dragoman[cluster]'`. Nothing else in Dragoman knows of Ray but `serve/cluster.py`.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import dragoman
from dragoman.errors import DragomanError
from dragoman.workers import (
    KILLED,
    THREADS,
    News,
    Task,
    Told,
    Work,
    done_apart,
    news_of,
    one_thread,
)

LOCAL = "local"
"""In place of an address: a cluster of this machine alone, for as long as the command runs."""
_ADDRESS = re.compile(r"(\[[0-9a-f:]+\]|[\w.-]+):(\d{1,5})", re.I)
# Ray speaks gRPC, that is HTTP/2: both sides begin with their settings.
_SETTINGS = b"\x04"
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
_PATIENCE = 5.0  # seconds for a machine to answer
# It would tell its makers that it is used; and every line of the log counts.
_RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_COLOR_PREFIX": "0", "RAY_DEDUP_LOGS": "0"}
_OURS = ("DRAGOMAN_HOME", "XDG_CACHE_HOME")  # where the store is


def connect(address: str, *, cores: int | None = None, logs: bool = False) -> Any:
    """Return Ray, connected to the cluster of an address, or to one that is started here.

    `cores` is what a cluster that is started here shall say that it has; `logs`: what workers write
    to standard error comes out here.
    """
    _check(address)
    for name, value in _RAY.items():
        os.environ.setdefault(name, value)
    if address != LOCAL and _has_token():
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # which Ray reads when it is imported
    try:
        import ray
    except ImportError as error:
        raise DragomanError(
            "A cluster needs Ray; install it with: pip install 'dragoman[cluster]'"
        ) from error
    if ray.is_initialized():  # by this command, for its last run
        return ray
    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": logs}
    try:
        if address == LOCAL:
            with one_thread():  # its workers are children of this process
                ray.init(LOCAL, num_cpus=cores, include_dashboard=False, **quiet)
        else:
            ray.init(address, runtime_env=_environment(), **quiet)
    except Exception as error:  # Ray raises no less, should a busy machine not start it in 30 s
        reason = str(error).strip().partition("\n")[0]
        raise DragomanError(f"Cannot work with the cluster '{address}': {reason}") from error
    return ray


def _check(address: str) -> None:
    """Refuse what is no address, or where no Ray answers: Ray itself would wait for long."""
    if address == LOCAL:
        return
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found[2]) > 65535:
        raise DragomanError(
            f"'{address}' is no address of a cluster.",
            advice=f"write --cluster=HOST:PORT, or --cluster={LOCAL} for this machine alone.",
        )
    try:
        with socket.create_connection((found[1].strip("[]"), int(found[2])), _PATIENCE) as there:
            there.sendall(_GREETING)
            said = there.recv(9)
    except OSError as error:
        raise DragomanError(
            f"No cluster answers at {address} ({error.strerror or error}).",
            advice="start one with 'ray start --head', which says its address.",
        ) from error
    if said[3:4] != _SETTINGS and os.environ.get("RAY_USE_TLS") != "1":
        raise DragomanError(f"What answers at {address} is no Ray cluster.")


def _has_token() -> bool:
    """Whether there is a token for clusters, where Ray looks for it."""
    named = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    return named or (Path.home() / ".ray" / "auth_token").exists()


def _environment() -> dict[str, Any]:
    """What workers of other machines need of ours: this very code, and where the store is."""
    set_here = {name: os.environ[name] for name in _OURS if name in os.environ}
    threads = {name: os.environ.get(name, "1") for name in THREADS}
    return {
        "py_modules": [str(Path(dragoman.__file__).parent)],
        "env_vars": {**threads, **set_here},
    }


@dataclass(frozen=True, slots=True)
class Cluster:
    """The workers of a cluster, one a core, or one a GPU.

    They work in the folder that this process works in, and read and write the same files: it is on
    storage that the machines share. `fresh` gives every task a process of its own.
    """

    address: str
    gpu: bool = False
    fresh: bool = False

    def each(self, work: Work[Task, News], tasks: Iterable[Task]) -> Iterator[News]:
        """As many at once as the cluster has cores; a machine that is lost costs what it did."""
        ray = connect(self.address)
        check_room(ray, 1, cores=1, gpu=self.gpu)
        # 0 calls: no end of them, and what a worker has loaded stays.
        do = ray.remote(num_cpus=1, num_gpus=int(self.gpu), max_calls=int(self.fresh))(_do)
        waiting = iter(tasks)
        running: list[Any] = []
        try:
            while True:
                free = max(2, 2 * int(ray.cluster_resources().get("CPU", 1))) - len(running)
                for task in islice(waiting, free):
                    running.append(do.remote(os.getcwd(), work, task))
                if not running:
                    return
                (done, *_), running = ray.wait(running, num_returns=1)
                yield from news_of(answer(ray, done))
        finally:
            for one in running:
                ray.cancel(one, force=True)


def check_room(ray: Any, workers: int, *, cores: int, gpu: bool) -> None:
    """Refuse what no machine has: Ray would wait for it for ever."""
    alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    fitting = [int(has.get("CPU", 0) // cores) for has in alive]
    if gpu:
        fitting = [min(n, int(has.get("GPU", 0))) for n, has in zip(fitting, alive, strict=True)]
    if sum(fitting) < workers:
        each = f"{cores} core{'s' * (cores > 1)}" + " and a GPU" * gpu
        raise DragomanError(
            f"The cluster has room for {sum(fitting)} of {workers} workers with {each} each; "
            "add machines, or ask for less."
        )


def _do(folder: str, work: Work[Task, News], task: Task) -> Told[News]:
    """Return what the work on a task tells, in the worker."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise DragomanError(
            f"The machine {socket.gethostname()} of the cluster has no folder {folder}; run the "
            "command in one that all its machines share."
        ) from error
    return done_apart(work, task)


def answer(ray: Any, promised: Any) -> Any:
    """Return what a worker returns; its DragomanError is raised as one."""
    try:
        return ray.get(promised)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, DragomanError):
            raise error.cause.plain() from error
        raise
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        raise DragomanError(KILLED.format(why=" on the cluster")) from error
    except ray.exceptions.RayError as error:
        reason = str(error).strip().partition("\n")[0]
        raise DragomanError(
            f"The cluster has failed ({reason}); run the command again to go on."
        ) from error
