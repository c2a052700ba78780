"""Where heads may stop reading, and where they do when they decide for real.

Shapes: B batch, H heads, U target units, S source states, G decisions (groups of states), D size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from dragoman.train.nets.monotonic.alignment import CERTAIN

# Of `trimmed`, which waits for the device.
COUNTED = "how many decisions may be taken is counted on the host"


@dataclass(frozen=True)
class Decisions:
    """Where a head may stop: decision g is taken once the first ends[b, g] states are heard."""

    ends: Tensor  # [B, G]; never more than the item has
    counts: Tensor  # [B] decisions of each item, at least 1
    states: int  # S, the longest item's with its padding
    every: int | None = None  # states between two decisions, when that is fixed

    def heard(self, final: Tensor, full: Tensor) -> Decisions:
        """Where more source is to come (not final [B]) only the `full` [B] first ones count: the
        last one is taken at the end of what was heard, which is then no end."""
        return replace(self, counts=torch.where(final, self.counts, full))

    def trimmed(self) -> Decisions:
        """Without columns that no item needs."""
        return replace(self, ends=self.ends[:, : int(self.counts.max())].contiguous())

    def pool(self, states: Tensor) -> Tensor:
        """The mean of the states between one decision and the next: [B, S, D] -> [B, G, D]"""
        if self.every == 1:
            return states
        state = torch.arange(states.shape[1], device=states.device)
        begins = torch.nn.functional.pad(self.ends[:, :-1], (1, 0))
        member = (state >= begins.unsqueeze(-1)) & (state < self.ends.unsqueeze(-1))
        size = (self.ends - begins).clamp(min=1).unsqueeze(-1)
        return (member.to(states.dtype) @ states) / size

    def pick(self, states: Tensor) -> Tensor:
        """The state each decision ends on: [B, S, D] -> [B, G, D]"""
        if self.every == 1:
            return states
        index = (self.ends - 1).clamp(min=0).unsqueeze(-1)
        return states.gather(1, index.expand(-1, -1, states.shape[2]))

    @cached_property
    def places(self) -> Tensor:
        """The decision that is taken at each state [B, S], -1 where none is."""
        group = torch.arange(self.ends.shape[1], device=self.ends.device, dtype=torch.int32)
        real = group < self.counts.unsqueeze(1)
        state = torch.where(real, (self.ends - 1).clamp(min=0), self.states)  # or a spare column
        places = group.new_full((len(state), self.states + 1), -1)
        return places.scatter_(1, state, group.expand_as(state))[:, :-1].contiguous()


def decide_every(ratio: int, lengths: Tensor, states: int) -> Decisions:
    """Fixed pre-decision: every `ratio` states, and at the end of the source.

    lengths [B]; `states` is S, the longest of them with its padding.
    """
    group = torch.arange(1, (states + ratio - 1) // ratio + 1, device=lengths.device)
    ends = torch.minimum(group * ratio, lengths.unsqueeze(1))
    return Decisions(ends, ((lengths + ratio - 1) // ratio).clamp(min=1), states, ratio)


def decide_at(triggers: Tensor, lengths: Tensor) -> Decisions:
    """Flexible pre-decision: at the states marked in triggers [B, S], and at the end; G is S."""
    states = triggers.shape[1]  # `len()` would be a number of the traced example in a graph
    state = torch.arange(states, device=triggers.device)
    last = (lengths - 1).unsqueeze(1)
    marked = (triggers & (state < last)) | (state == last)
    place = torch.where(marked, marked.cumsum(1) - 1, states)  # the rest go to a spare column
    ends = lengths.unsqueeze(1).repeat(1, states + 1)
    ends = ends.scatter(1, place, (state + 1).expand_as(place))[:, :-1]
    return Decisions(ends, marked.sum(1).clamp(min=1), states)


def first_stop(energy: Tensor, pointers: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Where heads stop when they decide by p >= 1/2, unit after unit, never going back.

    Energies [B, H, U, G], the decision each head stands at [B, H], decisions so far [B]. Returns
    the decision each head stops at [B, H, U] and whether it wanted to [B, H, U]; a head that would
    read on past the last decision is left there and did not want to.
    """
    group = torch.arange(energy.shape[-1], device=energy.device)
    willing = (energy >= 0) & (group < counts[:, None, None, None])
    last = (counts - 1).clamp(min=0)[:, None].expand_as(pointers)
    stops, wanted = [], []
    for u in range(energy.shape[2]):
        here = willing[:, :, u] & (group >= pointers.unsqueeze(-1))
        found = here.any(-1)
        pointers = torch.where(found, here.to(torch.int32).argmax(-1), last)
        stops.append(pointers)
        wanted.append(found)
    return torch.stack(stops, -1), torch.stack(wanted, -1)


def waitk_energy(k: int, units: int, groups: int, device: torch.device | None = None) -> Tensor:
    """Wait-k as energies [U, G]: unit u (from 0) stops for certain at decision k + u."""
    group = torch.arange(1, groups + 1, device=device)
    due = k + torch.arange(units, device=device).unsqueeze(1)
    return torch.where(group >= due, CERTAIN, -CERTAIN)
