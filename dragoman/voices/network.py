"""ONNX networks of the neural voices."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError

THREADS = min(2, os.cpu_count() or 1)
"""A voice must not take all cores from the interpreter."""


ROUNDING = 0.28
"""A VITS network rounds each phoneme's length up to a frame: so much of its speech is rounding."""


def vits_length(speed: float) -> float:
    """How long a VITS network must want phonemes to be, to speak at this speed after rounding."""
    return max(0.1, (1.0 / speed - ROUNDING) / (1.0 - ROUNDING))


_device = "cpu"


def run_on(device: str) -> None:
    """Networks that are loaded from now on run there: `cpu`, or what torch calls a device."""
    global _device
    _device = device


def load_network(path: Path) -> Any:
    """An inference session; the same talk gives the same sound in every run."""
    if _device != "cpu":
        from dragoman.voices.gpu.graph import TorchNetwork

        return TorchNetwork(path, _device)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting is free
    # To plan which values may share memory takes most of loading where nodes are many: 9 s of 11.
    options.enable_mem_reuse = False
    options.log_severity_level = 3  # warnings about constant folding are nobody's business
    onnxruntime.set_seed(1)
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class of its own for every kind of damage
        reason = str(error).splitlines()[0]
        raise DragomanError(f"{path} is not a voice that can be loaded: {reason}") from None
