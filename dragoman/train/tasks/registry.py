"""Every task by name. A new task is one file and one line here."""

from __future__ import annotations

from typing import Any

from dragoman.errors import DragomanError
from dragoman.train.data.front import FrontEnd
from dragoman.train.nets.base import Net
from dragoman.train.settings import convert
from dragoman.train.tasks.base import Task
from dragoman.train.tasks.offline import Offline, OfflineSettings

TASKS: dict[str, tuple[type, type[Task]]] = {
    "offline": (OfflineSettings, Offline),
}


def build_task(name: str, settings: dict[str, Any], net: Net, front: FrontEnd | None) -> Task:
    """A task from its name and the settings that differ from the default."""
    if name not in TASKS:
        raise DragomanError(f"There is no task '{name}'; the tasks are {', '.join(TASKS)}.")
    kind, task = TASKS[name]
    return task(net, front, convert(kind, settings, "task_settings"))
