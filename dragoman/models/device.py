"""Whether there is a GPU that models can run on: without importing torch, which takes seconds."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib.util import find_spec

from dragoman.errors import DragomanError

DRIVERS = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")


def gpu_found() -> bool:
    """Whether torch and a GPU are there."""
    return why_no_gpu() is None


def why_no_gpu() -> DragomanError | None:
    """What is missing for `--device cuda`, to be raised or shown; None: nothing."""
    if not gpus():
        return DragomanError(
            "There is no CUDA GPU here.", advice="take --device cpu, or leave --device out."
        )
    if find_spec("torch") is None:
        return DragomanError(
            "A GPU needs torch.",
            advice="install it (pip install 'dragoman[gpu]'), or take --device cpu.",
        )
    import torch

    if not torch.cuda.is_available():
        return DragomanError(
            "This torch cannot use the GPU here (it may be made for the CPU alone).",
            advice="install one that can, as https://pytorch.org tells, or take --device cpu.",
        )
    return None


@cache
def gpus() -> int:
    """The number of GPUs, as their driver reports it."""
    for name in DRIVERS:
        try:
            driver = ctypes.CDLL(name)
        except OSError:
            continue
        count = ctypes.c_int(0)
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
            return count.value
    return 0


def share_gpu(processes: int) -> None:
    """Take no more than a fair part of the GPU's memory, where several processes use one."""
    import torch

    torch.cuda.set_per_process_memory_fraction(1 / processes)
