"""How many talks a server steps together, and at the same time, where nobody has said; and whether
files are stepped beside them."""

from __future__ import annotations

import math

from dragoman.errors import DragomanError
from dragoman.models.device import gpu_found
from dragoman.setup import System
from dragoman.store.overview import KEEPS_UP, cores, cost_of, may_use_gpu


def with_lanes(system: System, streams: int) -> tuple[System, int]:
    """The system, and its lanes: one for every core, as far as there are talks for them and a core
    keeps up with a talk. Cores that are left are shared out as threads."""
    setup, cost = system.setup, cost_of(system.setup.model)
    if on_gpu(system) or setup.threads or cost is None:
        return system, 1
    lanes = min(streams, cores() // math.ceil(cost / KEEPS_UP))
    if lanes < 2:
        return system, 1
    return System(setup.with_changes(threads=cores() // lanes)), lanes


def talks_in_a_step(system: System, streams: int) -> int:
    """On a GPU, all of them. A CPU works no faster for several: the first of them would only wait
    for the last."""
    return streams if on_gpu(system) else 1


def load(system: System, lanes: int) -> None:
    """Load what interprets, before anybody connects."""
    system.model, system.vad  # noqa: B018
    if lanes > 1 and getattr(system.model, "device", "cpu") != "cpu":
        raise DragomanError(
            "A GPU has one lane.", advice="give it larger steps by --batch instead."
        )


def on_gpu(system: System) -> bool:
    device = system.setup.device
    if device == "auto":
        return may_use_gpu(system.setup.model) and gpu_found()
    return device == "cuda"


def files_apart(system: System, lanes: int) -> bool:
    """Whether files have a thread of their own: where several may work with the model at once. A
    GPU does one thing after the other, and of a model of one's own nobody knows."""
    return lanes > 1 or (not on_gpu(system) and cost_of(system.setup.model) is not None)
