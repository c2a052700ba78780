"""CTC on an inner encoder layer, and the compression that its labels allow."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.train.nets.layers import HIDDEN, linear, valid


class CtcHead(nn.Module):
    """A linear map from states to source units and blank (the last): [B, S, D] -> [B, S, V + 1]"""

    def __init__(self, size: int, source_vocabulary: int):
        super().__init__()
        self.linear = linear(size, source_vocabulary + 1)

    def forward(self, states: Tensor) -> Tensor:
        """On a GPU with a few units more, which nobody will ever hear: their number is a multiple
        of 8, of which matrix products are several times faster."""
        more = -self.linear.out_features % 8
        if not more or not states.is_cuda:
            return self.linear(states)
        return self.padded(states, more)

    def padded(self, states: Tensor, more: int) -> Tensor:
        weight = F.pad(self.linear.weight, (0, 0, 0, more))
        return F.linear(states, weight, F.pad(self.linear.bias, (0, more), value=HIDDEN))


def runs_of(labels: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers the runs of equal labels: [B, S] -> run index of each state [B, S], runs [B]"""
    changes = labels[:, 1:] != labels[:, :-1]
    runs = F.pad(changes.long().cumsum(dim=1), (1, 0))
    last = runs.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
    return runs, torch.where(lengths > 0, last + 1, 0)


def compress(states: Tensor, logits: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Averages the states of every run of equal greedy labels, blank runs included.

    states [B, S, D], logits [B, S, V + 1] -> [B, R, D], lengths [B]. Only the states carry a
    gradient. While a graph is exported R stays S (the rest is padding): its shape must not depend
    on the data.
    """
    runs, counts = runs_of(logits.argmax(dim=-1), lengths)
    size = states.shape[1]
    longest = size if torch.compiler.is_exporting() else int(counts.max())
    slots = torch.arange(longest, device=states.device)
    member = (runs.unsqueeze(1) == slots[:, None]) & valid(lengths, size).unsqueeze(1)
    weights = member.to(states.dtype)  # [B, R, S]
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1)
    return weights @ states, counts
