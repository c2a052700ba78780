"""Every task by name. A new task is one file and one line here."""

from __future__ import annotations

from typing import Any

from dragoman.errors import DragomanError
from dragoman.train.data.front import FrontEnd
from dragoman.train.nets.base import Net
from dragoman.train.settings import convert
from dragoman.train.tasks.base import Task, Words
from dragoman.train.tasks.caat import CaatSettings, CaatTask
from dragoman.train.tasks.joint import Joint, JointSettings
from dragoman.train.tasks.monotonic import Monotonic, MonotonicSettings
from dragoman.train.tasks.mt import Mt, MtSettings
from dragoman.train.tasks.offline import Offline, OfflineSettings
from dragoman.train.tasks.waitk import WaitK, WaitKSettings

TASKS: dict[str, tuple[type, type[Task]]] = {
    "offline": (OfflineSettings, Offline),
    "wait-k": (WaitKSettings, WaitK),
    "mma": (MonotonicSettings, Monotonic),
    "joint": (JointSettings, Joint),
    "caat": (CaatSettings, CaatTask),
    "mt": (MtSettings, Mt),
}


def build_task(
    name: str,
    settings: dict[str, Any],
    net: Net,
    front: FrontEnd | None,
    words: Words | None = None,
) -> Task:
    """A task from its name and the settings that differ from the default."""
    if name not in TASKS:
        raise DragomanError(f"There is no task '{name}'; the tasks are {', '.join(TASKS)}.")
    kind, task = TASKS[name]
    _check_net(name, net, front)
    made = task(net, front, convert(kind, settings, "task_settings"), words or Words())
    if made.compresses and made.counts_states:
        raise DragomanError(
            "CTC compression merges states, so that a time no longer says which state it is: for "
            "wait-k and for word ends set ctc_compression to false."
        )
    return made


def _check_net(name: str, net: Net, front: FrontEnd | None) -> None:
    """Refuse a net that cannot do the task, before anything is loaded onto a device."""
    needs = {"mma": "align", "joint": "align_text", "caat": "lattice"}.get(name, "decode")
    if not hasattr(net, needs) or (name == "mt") != (front is None):
        raise DragomanError(
            f"The net {type(net).__name__} cannot be trained for the task '{name}'; "
            "mma needs the net mma, joint joint-mma, caat caat, mt text-transformer."
        )
