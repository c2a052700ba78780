"""Cross-attention whose heads decide how far to read: MMA-IL and MMA-H, in training and at work.

Training attends in expectation over where every head would stop; at work every head keeps a pointer
and really stops. Both need to know where stopping is allowed (`Decisions`).

The soft attention has the weights of a plain decoder's attention under the same names: a decoder
trained offline can be taught to read simultaneously.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman.train.nets.layers import (
    LayerConfig,
    as_bias,
    join_heads,
    linear,
    several,
    split_heads,
)
from dragoman.train.nets.monotonic.decisions import Decisions, first_stop, waitk_energy
from dragoman.train.nets.monotonic.expectation import HeadSettings, read
from dragoman.train.nets.monotonic.expectation_plain import stop_energies
from dragoman.train.settings import Count, Level, Whole


@dataclass(frozen=True)
class MonotonicConfig:
    """How heads attend and when they may stop: part of the settings of a net."""

    # To all states up to the one that a head stops at, or to that one alone.
    attention: Literal["infinite", "hard"] = "infinite"
    wait: Count = 0  # k of a fixed wait-k policy; 0: heads learn when to stop
    ratio: Whole = 7  # states per decision (7 states of 40 ms: 280 ms)
    pooling: Literal["average", "last"] = "average"  # what stands for the states of a decision
    noise: Level = 1.0  # on the energies in training, so that heads learn to be sure
    energy_bias: float | None = None  # start of a learnt offset; below 0 heads read more at first

    def group(self, states: Tensor, decisions: Decisions) -> Tensor:
        """What stands for the states of each decision: [B, S, D] -> [B, G, D]"""
        return decisions.pick(states) if self.pooling == "last" else decisions.pool(states)

    def readable(self, states: Tensor, decisions: Decisions) -> Tensor:
        """The states that heads may read: all, or those decisions end on; [B, S or G, D]"""
        return states if self.attention == "infinite" else decisions.pick(states)


@dataclass(frozen=True)
class Expected:
    """Attend in expectation: teacher forcing."""

    decisions: Decisions
    stop_key: Tensor | None  # [B, G, D] what heads look at to decide, unless they wait k
    energies: bool = False  # keep the noise-free stop energies (DAR compares them)


@dataclass(frozen=True)
class Real:
    """Attend where the heads really stop."""

    decisions: Decisions
    pointers: Tensor  # [B, H] the decision each head stands at
    units: int  # target units before these


@dataclass(frozen=True)
class Reading:
    """What the heads of one layer did."""

    delays: Tensor  # [B, H, U] states read before each unit
    energies: Tensor | None = None  # [B, H, U, G] if asked for
    stops: Tensor | None = None  # [B, H, U] decision each head stopped at, and
    wanted: Tensor | None = None  # [B, H, U] whether it wanted to, or ran out of source
    attention: Tensor | None = None  # [B, U, S] averaged over heads


class MonotonicAttention(nn.Module):
    """Multi-head attention of the target to as much of the source as each head cares to read."""

    def __init__(self, config: LayerConfig, monotonic: MonotonicConfig):
        super().__init__()
        self.heads, self.dropout = config.heads, config.attention_dropout
        self.monotonic = monotonic
        self.learns, self.soft = not monotonic.wait, monotonic.attention == "infinite"
        size = config.size
        if self.soft:
            self.query = linear(size, size)
            self.key_value = linear(size, 2 * size)
        else:
            self.value = linear(size, size)
        if self.learns:
            self.stop_query = linear(size, size)
            self.stop_key = linear(size, size)
        self.out = linear(size, size)
        self.energy_bias = None
        if self.learns and monotonic.energy_bias is not None:
            self.energy_bias = nn.Parameter(torch.tensor(float(monotonic.energy_bias)))

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """States [B, S, D] -> keys (soft), values, stop keys (learnt), each [B, H, S, K]"""
        kept = self.key_value(states).chunk(2, dim=-1) if self.soft else [self.value(states)]
        if self.learns:
            kept = [*kept, self.stop_key(states)]
        return tuple(split_heads(x, self.heads) for x in kept)

    def explain(
        self, x: Tensor, memory: Tensor | tuple[Tensor, ...], how: Expected | Real
    ) -> tuple[Tensor, Reading]:
        """x [B, U, D] -> what it read of the source [B, U, D], and a `Reading`.

        memory: the readable states [B, S or G, D] in training, all states' projection at work.
        """
        if isinstance(how, Expected):
            assert isinstance(memory, Tensor)
            context, reading = self._expect(x, memory, how)
        else:
            assert isinstance(memory, tuple)
            context, reading = self._really(x, memory, how)
        return self.out(context), reading

    def _waiting(self, x: Tensor, decisions: Decisions, before: int) -> Tensor:
        """Energies [1, 1, U, G] of a fixed policy; `before`: target units before x."""
        wait, groups = self.monotonic.wait + before, decisions.ends.shape[1]
        return waitk_energy(wait, x.shape[1], groups, x.device)[None, None]

    # -------------------------------------------------------- in expectation

    def _expect(self, x: Tensor, states: Tensor, how: Expected) -> tuple[Tensor, Reading]:
        noise, dropout = (self.monotonic.noise, self.dropout) if self.training else (0.0, 0.0)
        settings = HeadSettings(self.heads, self.soft, how.decisions, noise, dropout, how.energies)
        memory = self.key_value(states) if self.soft else self.value(states)
        maps = ([self.query] if self.soft else []) + ([self.stop_query] if self.learns else [])
        queries = several(x, maps) if maps else None
        energy = None if self.learns else self._waiting(x, how.decisions, before=0)
        context, delays, energies = read(
            settings, memory, queries, how.stop_key, self.energy_bias, energy
        )
        return context, Reading(delays, energies=energies)

    # -------------------------------------------------------- for real

    def _really(self, x: Tensor, memory: tuple[Tensor, ...], how: Real) -> tuple[Tensor, Reading]:
        value = memory[1] if self.soft else memory[0]
        decisions = how.decisions
        if self.learns:  # a linear map of a mean is the mean of the maps: as in training
            stop_key = self.monotonic.group(join_heads(memory[-1]), decisions)
            energy = stop_energies(self.stop_query(x), stop_key, self.energy_bias, self.heads)
        else:
            energy = self._waiting(x, decisions, how.units)
        energy = energy.expand(x.shape[0], self.heads, -1, -1)
        stops, wanted = first_stop(energy, how.pointers, decisions.counts)
        ends = decisions.ends[:, None, None, :].expand_as(energy)
        delays = ends.gather(-1, stops.unsqueeze(-1))  # [B, H, U, 1]
        state = torch.arange(value.shape[2], device=x.device)
        if self.soft:
            query = split_heads(self.query(x), self.heads) * value.shape[-1] ** -0.5
            scores = (query @ memory[0].transpose(-1, -2)).float()
            weights = (scores + as_bias(state < delays)).softmax(-1)
        else:
            weights = (state == delays - 1).float()
        reading = Reading(delays.squeeze(-1), None, stops, wanted, weights.mean(1))
        return join_heads(weights.to(value.dtype) @ value), reading
