"""The operations of ONNX that place numbers: shapes, axes, parts, in torch.

Shapes, axes and places are small whole numbers and stay on the CPU, so that reading them never
waits for the device.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

TYPES = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16}


def ints(value: Tensor) -> list[int]:
    return [int(one) for one in value.reshape(-1).tolist()]


def together(*values: Tensor) -> list[Tensor]:
    """On one device: numbers that were a shape's join those they are used with."""
    for value in values:
        if value.device.type != "cpu":
            return [other.to(value.device, non_blocking=True) for other in values]
    return list(values)


def shape(x: Tensor, start: int = 0, end: int | None = None) -> Tensor:
    return torch.tensor(x.shape[start:end], dtype=torch.int64)


def cast(x: Tensor, to: int) -> Tensor:
    return x.to(TYPES[to])


def gather(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    if index.ndim == 0 and index.device.type == "cpu":
        return x.select(axis, int(index))
    index = index.to(x.device)
    index = torch.where(index < 0, index + x.shape[axis], index)
    picked = x.index_select(axis, index.reshape(-1))
    axis %= x.ndim
    return picked.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def gather_elements(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    index = torch.where(index < 0, index + x.shape[axis], index)
    return x.gather(axis, index)


def gather_nd(x: Tensor, index: Tensor) -> Tensor:
    return x[tuple(index.to(x.device).unbind(-1))]


def scatter_nd(x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    x, updates = x.clone(), updates.to(x.device)
    x[tuple(index.to(x.device).unbind(-1))] = updates
    return x


def reshape(x: Tensor, shape: Tensor, allowzero: int = 0) -> Tensor:
    wanted = ints(shape)
    if not allowzero:
        wanted = [x.shape[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    return x.reshape(wanted)


def unsqueeze(x: Tensor, axes: Tensor) -> Tensor:
    whole = x.ndim + axes.numel()
    for axis in sorted(one % whole for one in ints(axes)):
        x = x.unsqueeze(axis)
    return x


def squeeze(x: Tensor, axes: Tensor | None = None) -> Tensor:
    return x.squeeze() if axes is None else x.squeeze(tuple(ints(axes)))


def expand(x: Tensor, shape: Tensor) -> Tensor:
    return x.broadcast_to(torch.broadcast_shapes(x.shape, ints(shape)))


def slice_of(
    x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None = None, steps: Tensor | None = None
) -> Tensor:
    begins, stops = ints(starts), ints(ends)
    places = range(len(begins)) if axes is None else ints(axes)
    paces = [1] * len(begins) if steps is None else ints(steps)
    for begin, stop, axis, pace in zip(begins, stops, places, paces, strict=True):
        picked = range(x.shape[axis])[begin:stop:pace]
        if pace > 0:
            part = [slice(None)] * (axis % x.ndim) + [slice(picked.start, picked.stop, pace)]
            x = x[tuple(part)]
        else:
            x = x.index_select(axis, torch.tensor(list(picked), device=x.device))
    return x


def split(x: Tensor, sizes: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    return x.split(ints(sizes), dim=axis)


def concat(*parts: Tensor, axis: int) -> Tensor:
    return torch.cat(together(*parts), dim=axis)


def constant_of_shape(shape: Tensor, value: np.ndarray) -> Tensor:
    return torch.full(ints(shape), value.item(), dtype=torch.from_numpy(value.copy()).dtype)


def range_of(start: Tensor, limit: Tensor, step: Tensor) -> Tensor:
    return torch.arange(start.item(), limit.item(), step.item(), dtype=start.dtype)


def where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    condition, a, b = together(condition, a, b)
    return torch.where(condition, a, b)


def pad(x: Tensor, pads: Tensor, value: Tensor | None = None, mode: str = "constant") -> Tensor:
    widths = ints(pads)
    pairs = list(zip(widths[: x.ndim], widths[x.ndim :], strict=True))
    if mode == "constant":
        flat = [width for pair in reversed(pairs) for width in pair]
        return F.pad(x, flat, value=0.0 if value is None else value.item())
    return F.pad(x.reshape(-1, 1, x.shape[-1]), pairs[-1], mode=mode).reshape(*x.shape[:-1], -1)
