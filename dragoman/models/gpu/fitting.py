"""Whether weights fit into a GPU, and the kind of numbers that they are computed in."""

from __future__ import annotations

from pathlib import Path

import torch

from dragoman.models.memory import refuse_too_large_for_gpu
from dragoman.models.options import Compute, Options
from dragoman.models.whisper.weights import Weights


def numbers_that_fit(weights: Weights, folder: Path, options: Options) -> Compute:
    """The kind of numbers to compute in. Raise DragomanError if the GPU has no memory for the
    weights of this folder in such numbers."""
    compute = options.compute or "float16"
    if options.device == "cuda":
        size = torch.finfo(getattr(torch, compute)).bits // 8
        free, _ = torch.cuda.mem_get_info()
        refuse_too_large_for_gpu(weights.numbers * size, folder, free)
    return compute
