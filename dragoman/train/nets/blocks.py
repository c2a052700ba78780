"""States in chunks, each laid out with those ahead of it that it sees: no layer sees further."""

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.train.nets.layers import as_bias


@dataclass(frozen=True)
class Context:
    """What a state sees, in states."""

    chunk: int
    right: int
    left: int


class Blocks:
    """S states laid out as N overlapping blocks, each a chunk and its look-ahead."""

    def __init__(self, context: Context, lengths: Tensor, states: int):
        chunk, right = context.chunk, context.right
        count = -(-states // chunk)
        device = lengths.device
        starts = torch.arange(count, device=device).unsqueeze(1) * chunk
        self.index = starts + torch.arange(chunk + right, device=device)  # [N, chunk + right]
        self.chunk, self.count, self.size = chunk, count, chunk + right
        self.places = self.index.flatten()
        self.mask = (self.places < lengths.unsqueeze(1)).unsqueeze(-1)  # [B, N * size, 1]
        self._context, self._starts = context, starts

    @cached_property
    def bias(self) -> Tensor:
        """What each one sees: [B, 1, N * size, N * size]"""
        starts, chunk = self._starts, self.chunk
        start = starts.expand_as(self.index).flatten()  # of the block each one belongs to
        ahead = (self.index >= starts + chunk).flatten()
        query, key = start.unsqueeze(1), self.places
        own = query == start
        past = ~ahead & (key < query) & (key >= query - self._context.left)
        return as_bias(own | past) + as_bias(self.mask.transpose(1, 2)).unsqueeze(1)

    def lay(self, x: Tensor) -> Tensor:
        """[B, S, D] -> [B, N * size, D], zeros past the end"""
        missing = int(self.count * self.chunk + self.size - self.chunk) - x.shape[1]
        return F.pad(x, (0, 0, 0, missing))[:, self.places]

    def chunks(self, x: Tensor) -> Tensor:
        """Time again, without look-ahead: [B, N * size, D] -> [B, N * chunk, D]"""
        return x.unflatten(1, (self.count, self.size))[:, :, : self.chunk].flatten(1, 2)

    def with_tail(self, x: Tensor, tail: int) -> Tensor:
        """Each block behind the `tail` states before it: [B * N, tail + size, D]"""
        before = F.pad(self.chunks(x), (0, 0, tail, 0)).unfold(1, max(tail, 1), self.chunk)
        before = before[:, : self.count].transpose(2, 3)[:, :, :tail]
        own = x.unflatten(1, (self.count, self.size))
        return torch.cat([before, own], dim=2).flatten(0, 1)
