"""A learned pre-decision: a head on the encoder that fires where a source word ends.

Ma et al. 2020 trigger a decision at state j when its trigger probability is above one half, and
leave learning that probability to future work; this is it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.train.nets.layers import linear


class BoundaryHead(nn.Module):
    """The log-odds that a word ends at each state: [B, S, D] -> [B, S]"""

    def __init__(self, size: int):
        super().__init__()
        self.linear = linear(size, 1)

    def forward(self, states: Tensor) -> Tensor:
        return self.linear(states).squeeze(-1)


def boundary_targets(
    ends_ms: Tensor, lengths: Tensor, size: int, state_ms: float, later: int = 0
) -> Tensor:
    """1 at the state in which a word ends, else 0: [B, S].

    ends_ms [B, W] are the times at which words end, negative where an item has fewer words. State
    j covers the time from j to j + 1 times `state_ms`; an end beyond the last state is that state.
    `later` marks so many states after it instead.
    """
    last = (lengths - 1).clamp(min=0).unsqueeze(1)
    state = (torch.ceil(ends_ms / state_ms) - 1).clamp(min=0).long() + later
    state = torch.minimum(state, last)
    targets = torch.zeros(len(lengths), size, device=lengths.device)
    return targets.scatter_reduce(1, state, (ends_ms >= 0).float(), reduce="amax")


def fires(logits: Tensor) -> Tensor:
    """Where a word end is seen: [B, S]. Neighbouring states above one half are one end."""
    above = logits > 0
    before = F.pad(above[:, :-1], (1, 0))
    return above & ~before
