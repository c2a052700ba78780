"""From the host to the device."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def moved(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array on a device. The host does not wait for what the device is still busy with, as it
    would for memory that can be paged out."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
