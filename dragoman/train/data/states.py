"""What a part of a net that is not trained makes of the sound, made once and kept.

A frozen encoder hears the same of the same sound in every epoch. Its states take about as much
memory as the sound, and with them an update is the work of the decoder alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from dragoman.train.data.corpus import TrainingSet
from dragoman.train.data.loader import Batch, on_device
from dragoman.train.nets.base import Listening

EVEN = 8  # states are padded to a multiple of so many, for which attention has fast kernels

# A batch to the rows that are kept of it `[B, R, D]` and how many states each item has `[B]`.
Listen = Callable[[Batch], tuple[Tensor, Tensor]]


class KeptStates:
    """The states of all items of a training set, in one tensor; a sound that several items have, as
    those of several targets do, is kept once."""

    def __init__(self, data: TrainingSet, net: Listening):
        self.net = net
        _, self.chosen, self.sound_of = np.unique(
            data.sounds(), return_index=True, return_inverse=True
        )
        samples = torch.from_numpy(data.samples[self.chosen])
        self.lengths, self.counts = net.states_in(samples).numpy(), net.rows_in(samples).numpy()
        self.starts = np.zeros(len(self.lengths), np.int64)
        self.rows = torch.zeros(0)

    def fill(self, batches: Iterable[Batch], listen: Listen, like: Tensor) -> None:
        """Keep what is heard in batches of the items `chosen`; kept as, and where, `like` is."""
        filled = 0
        for batch in batches:
            rows, _ = listen(batch)
            counts = self.counts[batch.items]
            ends = torch.from_numpy(counts).to(rows.device).unsqueeze(1)
            new = rows[torch.arange(rows.shape[1], device=rows.device) < ends].to(like)
            if not filled:
                self.rows = like.new_empty((int(self.counts.sum()), rows.shape[2]))
            self.rows[filled : filled + len(new)] = new
            self.starts[batch.items] = filled + np.cumsum(counts) - counts
            filled += len(new)

    def take(self, items: np.ndarray, samples: int) -> tuple[Tensor, Tensor]:
        """Rows `[B, R, D]` of items in a batch that is so many samples wide, and how many states
        each has."""
        width = int(self.net.rows_in(torch.tensor(samples)))
        width += -width % EVEN
        device, sounds = self.rows.device, self.sound_of[items]
        starts, counts, lengths = (
            on_device(one[sounds], device) for one in (self.starts, self.counts, self.lengths)
        )
        places = torch.arange(width, device=device).expand(len(items), width)
        inside = places < counts.unsqueeze(1)
        rows = torch.where(inside, starts.unsqueeze(1) + places, 0)
        return self.rows[rows] * inside.unsqueeze(2), lengths
