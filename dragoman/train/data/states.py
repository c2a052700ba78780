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
from dragoman.train.data.loader import Batch

EVEN = 8  # states are padded to a multiple of so many, for which attention has fast kernels

# A batch to its states `[B, S, D]` and how many each item has `[B]`.
Listen = Callable[[Batch], tuple[Tensor, Tensor]]


class KeptStates:
    """The states of all items of a training set, in one tensor; a sound that several items have, as
    those of several targets do, is kept once."""

    def __init__(self, data: TrainingSet, states_in: Callable[[Tensor], Tensor]):
        self.states_in = states_in
        _, self.chosen, self.sound_of = np.unique(
            data.sounds(), return_index=True, return_inverse=True
        )
        self.lengths = states_in(torch.from_numpy(data.samples[self.chosen])).numpy()
        self.starts = np.zeros(len(self.lengths), np.int64)
        self.rows = torch.zeros(0)

    def fill(self, batches: Iterable[Batch], listen: Listen, like: Tensor) -> None:
        """Keep what is heard in batches of the items `chosen`; kept as, and where, `like` is."""
        filled = 0
        for batch in batches:
            states, lengths = listen(batch)
            inside = torch.arange(states.shape[1], device=states.device) < lengths.unsqueeze(1)
            new, counts = states[inside].to(like), lengths.cpu().numpy()
            if not filled:
                total = int(self.lengths.sum())
                self.rows = like.new_empty((total, states.shape[2]))
            self.rows[filled : filled + len(new)] = new
            self.starts[batch.items] = filled + np.cumsum(counts) - counts
            filled += len(new)

    def take(self, items: np.ndarray, samples: int) -> tuple[Tensor, Tensor]:
        """States `[B, S, D]` of items in a batch that is so many samples wide, and their number."""
        width = int(self.states_in(torch.tensor(samples)))
        width += -width % EVEN
        device, sounds = self.rows.device, self.sound_of[items]
        starts, lengths = (
            torch.from_numpy(one[sounds]).to(device) for one in (self.starts, self.lengths)
        )
        places = torch.arange(width, device=device).expand(len(items), width)
        inside = places < lengths.unsqueeze(1)
        rows = torch.where(inside, starts.unsqueeze(1) + places, 0)
        return self.rows[rows] * inside.unsqueeze(2), lengths
