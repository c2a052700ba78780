"""Dropout that costs next to nothing where code is compiled.

A compiler puts dropout into the same pass over memory as what is around it, and then a pass waits
for its random numbers: torch's generator multiplies twenty times for each of them. A number's
place, scrambled together with two random numbers of its own draw, decides as well whether it is
kept, for two multiplications; and what was left out is found again on the way back without being
kept in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Multipliers of a mixer of 32 bits with little bias (C. Wellons' lowbias32), as signed numbers.
FIRST, SECOND = 0x7FEB352D, 0x846CA68B - 2**32


class Dropout(nn.Dropout):
    """nn.Dropout, and cheap where it is compiled."""

    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p) if self.training else input


def dropout(x: Tensor, share: float) -> Tensor:
    """x without a random share of its numbers, the others made larger by as much."""
    if not share:
        return x
    if not torch.compiler.is_compiling():
        return F.dropout(x, share)
    return x * kept(x.shape, share, x.device).to(x.dtype) * (1 / (1 - share))


def kept(shape: Sequence[int], share: float, device: torch.device) -> Tensor:
    """True for all numbers but a random share."""
    seeds = torch.randint(-(2**31), 2**31 - 1, (2,), device=device, dtype=torch.int32)
    size = torch.Size(shape).numel()
    places = torch.arange(size, device=device, dtype=torch.int32)
    limit = min(int(share * 2**32), 2**32 - 1) - 2**31
    return (scrambled(places, seeds) >= limit).view(shape)


def scrambled(places: Tensor, seeds: Tensor) -> Tensor:
    """[N] int32 places -> [N] int32 that look random, other ones for other seeds [2]."""
    x = places ^ seeds[0]
    x = (x ^ shifted(x, 16)) * FIRST
    x = (x ^ shifted(x, 15)) + seeds[1]
    x = (x ^ shifted(x, 16)) * SECOND
    return x ^ shifted(x, 16)


def shifted(x: Tensor, bits: int) -> Tensor:
    """x >> bits, with zeros from above also where it is negative"""
    return (x >> bits) & ((1 << (32 - bits)) - 1)
