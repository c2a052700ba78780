"""Whether a model fits into free memory, checked before it is loaded."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dragoman.errors import DragomanError

GPU_REST = 1_500_000_000  # bytes beside the weights: CUDA itself, and a few streams
WEIGHTS = {".bin", ".onnx", ".ort"}
TIMES = 3.5  # what loading and running takes, in sizes of the weights on disk: measured 3 to 5
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
USED = (Path("/sys/fs/cgroup/memory.current"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"))
MEMINFO = Path("/proc/meminfo")


def refuse_too_large(folder: Path, name: str, free: int | None = None) -> None:
    """Raise DragomanError if the model in a folder cannot be loaded into the `free` bytes."""
    free = free_memory() if free is None else free
    needed = int(TIMES * weights_size(folder))
    if free is not None and needed > free:
        raise DragomanError(
            f"Model '{name}' takes about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB "
            "are free.",
            advice="take a smaller one ('dragoman models list'), or close other programs.",
        )


def refuse_too_large_for_gpu(weights: int, folder: Path, free: int) -> None:
    """Raise DragomanError if so many bytes of weights do not fit into a GPU with so many free."""
    needed = weights + GPU_REST
    if needed > free:
        raise DragomanError(
            f"The model in {folder} takes about {needed / 1e9:.1f} GB of the GPU's memory, and "
            f"{free / 1e9:.1f} GB are free.",
            advice="take a smaller one ('dragoman models list'), --compute float16, or "
            "--device cpu.",
        )


def weights_size(folder: Path) -> int:
    found = [path for where in ("*", "onnx/*") for path in folder.glob(where)]
    return sum(path.stat().st_size for path in found if path.suffix in WEIGHTS and path.is_file())


def free_memory() -> int | None:
    """Free bytes, of the machine and of the container; None where they are unknown."""
    told = [free for free in (_of_machine(), _of_container()) if free is not None]
    return min(told, default=None)


def _of_machine() -> int | None:
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found:
        return int(found[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _of_container() -> int | None:
    for limit, used in zip(LIMITS, USED, strict=True):
        try:
            return max(0, int(limit.read_text()) - int(used.read_text()))
        except (OSError, ValueError):  # no container, or 'max'
            continue
    return None
