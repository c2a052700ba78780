"""Sums of what the batches showed, kept on the device until someone asks for the means."""

from __future__ import annotations

from collections import defaultdict

import torch
from lightning.fabric import Fabric
from torch import Tensor

from dragoman.audio.chunk import RATE
from dragoman.train.data.loader import Batch
from dragoman.train.tasks.base import Terms


class Tally:
    """Loss terms per target unit, and whatever else a task shows, over all processes."""

    def __init__(self) -> None:
        self.sums: dict[str, torch.Tensor | float] = defaultdict(float)
        self.units = 0
        self.seconds = 0.0  # of speech
        self.updates = 0
        self.elapsed = 0.0
        self.waited = 0.0  # seconds of those in which the next batch was not ready

    def add(self, terms: Terms, batch: Batch, counted: bool = True) -> None:
        """Take a batch into account, without waiting for the device."""
        weight = float(counted)
        for name, term in terms.losses.items():
            self.sums[f"loss/{name}"] += weight * term.detach().double()
        for name, (top, bottom) in terms.shown.items():
            self.sums[f"top/{name}"] += weight * top.detach().double()
            self.sums[f"bottom/{name}"] += weight * bottom.double()
        self.units += batch.units if counted else 0
        if counted and batch.heard:
            self.seconds += float(batch.samples.sum()) / RATE

    def means(self, fabric: Fabric) -> dict[str, float]:
        """`loss` and its terms per unit, and the shown ratios; every process must call this."""
        names = self.names(fabric)
        ours = [self.units, *(self.sums.get(name, 0.0) for name in names)]
        values = [torch.as_tensor(v, dtype=torch.float64, device=fabric.device) for v in ours]
        everybodys = fabric.all_reduce(torch.stack(values), reduce_op="sum")
        assert isinstance(everybodys, Tensor)
        units, *sums = everybodys.tolist()
        total = dict(zip(names, sums, strict=True))
        found = {n: value / units for n, value in total.items() if n.startswith("loss/")}
        found["loss"] = sum(found.values())
        for name in (name.removeprefix("top/") for name in total if name.startswith("top/")):
            found[name] = total[f"top/{name}"] / max(1.0, total[f"bottom/{name}"])
        return found

    def names(self, fabric: Fabric) -> list[str]:
        """What any process has summed up: one that had only text knows less than the others."""
        names = [list(self.sums)]
        if fabric.world_size > 1:
            names *= fabric.world_size
            torch.distributed.all_gather_object(names, list(self.sums))
        return sorted(set().union(*names))
