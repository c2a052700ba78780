"""Cross-attention whose heads decide how far to read: MMA-IL and MMA-H, in training and at work.

Training attends in expectation over where every head would stop; at work every head keeps a pointer
and really stops. Both need to know where stopping is allowed (`Decisions`).

The energies [B, H, U, S] are the large tensors here. They live only while one layer is computed:
the core is recomputed for the gradient, and what leaves it is as small as plain attention's result.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from dragoman.errors import DragomanError
from dragoman.train.nets.layers import LayerConfig, as_bias, join_heads, linear, split_heads
from dragoman.train.nets.monotonic import (
    Decisions,
    expected_alignment,
    expected_delay,
    first_stop,
    infinite_lookback,
    waitk_energy,
)

CHOICES = {"attention": ("infinite", "hard"), "pooling": ("average", "last")}


@dataclass(frozen=True)
class MonotonicConfig:
    """How heads attend and when they may stop."""

    attention: str = "infinite"  # or "hard": only to the state a head stops at
    wait: int = 0  # k of a fixed wait-k policy; 0: heads learn when to stop
    ratio: int = 7  # states per decision (7 states of 40 ms: 280 ms)
    pooling: str = "average"  # what stands for the states of a decision; or their "last" one
    noise: float = 1.0  # on the energies in training, so that heads learn to be sure
    energy_bias: float | None = None  # start of a learnt offset; below 0 heads read more at first

    def __post_init__(self) -> None:
        for name, choices in (
            ("attention", ("infinite", "hard")),
            ("pooling", ("average", "last")),
        ):
            value = getattr(self, name)
            if value not in choices:
                raise DragomanError(
                    f"The monotonic {name} is '{value}'; it must be {' or '.join(choices)}."
                )
        if self.ratio < 1 or self.wait < 0:
            raise DragomanError(
                f"A ratio of {self.ratio} and a wait of {self.wait} make no decisions; "
                "the ratio must be at least 1 and the wait at least 0."
            )


@dataclass(frozen=True)
class Expected:
    """Attend in expectation: teacher forcing."""

    decisions: Decisions
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
            self.key = linear(size, size)
        if self.learns:
            self.stop_query = linear(size, size)
            self.stop_key = linear(size, size)
        self.value = linear(size, size)
        self.out = linear(size, size)
        self.energy_bias = None
        if self.learns and monotonic.energy_bias is not None:
            self.energy_bias = nn.Parameter(torch.tensor(float(monotonic.energy_bias)))

    # -------------------------------------------------------- what is kept of the source

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """States [B, S, D] -> values, keys (soft) and stop keys (learnt), each [B, H, S, K]"""
        return self._project(states, states, states)

    def _project(self, values: Tensor, keys: Tensor, stop_keys: Tensor) -> tuple[Tensor, ...]:
        projected = [self.value(values)]
        if self.soft:
            projected.append(self.key(keys))
        if self.learns:
            projected.append(self.stop_key(stop_keys))
        return tuple(split_heads(x, self.heads) for x in projected)

    def _group(self, states: Tensor, decisions: Decisions) -> Tensor:
        """What stands for the states of each decision: [B, S, D] -> [B, G, D]"""
        pooling = self.monotonic.pooling
        return decisions.pick(states) if pooling == "last" else decisions.pool(states)

    # -------------------------------------------------------- attention

    def explain(self, x: Tensor, memory: tuple | Tensor, how: Expected | Real) -> tuple:
        """x [B, U, D] -> what it read of the source [B, U, D], and a `Reading`.

        memory: the states [B, S, D] in training, their projection at work.
        """
        if isinstance(how, Expected):
            return self._expect(x, memory, how)
        return self._really(x, memory, how)

    def _queries(self, x: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Queries to attend with and to stop with: [B, H, U, K]"""
        soft = split_heads(self.query(x), self.heads) if self.soft else None
        stop = split_heads(self.stop_query(x), self.heads) if self.learns else None
        return soft, stop

    def _expect(self, x: Tensor, states: Tensor, how: Expected) -> tuple[Tensor, Reading]:
        values = states if self.soft else how.decisions.pick(states)
        value, *keys = self._project(values, states, self._group(states, how.decisions))
        arguments = (*self._queries(x), value, tuple(keys), x.shape[1], how)
        if torch.is_grad_enabled():
            context, reading = checkpoint(self._core, *arguments, use_reentrant=False)
        else:
            context, reading = self._core(*arguments)
        return self.out(join_heads(context)), reading

    def _core(
        self,
        query: Tensor | None,
        stop_query: Tensor | None,
        value: Tensor,
        keys: tuple[Tensor, ...],
        units: int,
        how: Expected,
    ) -> tuple[Tensor, Reading]:
        """Context [B, H, U, K] and the reading, from queries, values and keys."""
        decisions = how.decisions
        stop_key = keys[-1] if self.learns else None
        clean = self._energy(stop_query, stop_key, decisions.ends.shape[1], units, 0)
        energy = clean
        if self.training and self.learns and self.monotonic.noise:
            energy = clean + self.monotonic.noise * torch.randn_like(clean)
        energy = energy.expand(len(value), self.heads, -1, -1)
        weights = alignment = expected_alignment(energy, decisions.counts)
        if self.soft:
            spread = decisions.spread(alignment, value.shape[2])
            weights = infinite_lookback(spread, _scores(query, keys[0]))
        weights = F.dropout(weights, self.dropout, self.training)
        delays = expected_delay(alignment, decisions.ends)
        return weights.to(value.dtype) @ value, Reading(delays, clean if how.energies else None)

    def _energy(
        self, query: Tensor | None, key: Tensor | None, groups: int, units: int, before: int
    ) -> Tensor:
        """Energies of stopping [B, H, U, G] (or [1, 1, U, G] of a fixed policy)"""
        if query is None:
            device = self.value.weight.device
            wait = self.monotonic.wait + before
            return waitk_energy(wait, units, groups, device)[None, None]
        energy = _scores(query, key).float()
        return energy if self.energy_bias is None else energy + self.energy_bias

    def _really(self, x: Tensor, memory: tuple, how: Real) -> tuple[Tensor, Reading]:
        value, *keys = memory
        query, stop_query = self._queries(x)
        decisions = how.decisions
        groups = decisions.ends.shape[1]
        stop_key = None
        if self.learns:  # a linear map of a mean is the mean of the maps: as in training
            stop_key = split_heads(self._group(join_heads(keys[-1]), decisions), self.heads)
        energy = self._energy(stop_query, stop_key, groups, x.shape[1], how.units)
        energy = energy.expand(len(x), self.heads, -1, -1)
        stops, wanted = first_stop(energy, how.pointers, decisions.counts)
        ends = decisions.ends[:, None, None, :].expand_as(energy)
        delays = ends.gather(-1, stops.unsqueeze(-1))  # [B, H, U, 1]
        state = torch.arange(value.shape[2], device=x.device)
        if self.soft:
            weights = (_scores(query, keys[0]).float() + as_bias(state < delays)).softmax(-1)
        else:
            weights = (state == delays - 1).float()
        context = self.out(join_heads(weights.to(value.dtype) @ value))
        reading = Reading(delays.squeeze(-1), None, stops, wanted, weights.mean(1))
        return context, reading


def _scores(query: Tensor, key: Tensor) -> Tensor:
    """q k' / sqrt(K): [B, H, U, K], [B, H, S, K] -> [B, H, U, S]"""
    return (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)


def heard_decisions(decisions: Decisions, final: Tensor, lengths: Tensor) -> Decisions:
    """Without the last group where more source is to come and it is not full: final [B] bool."""
    full = lengths // decisions.every if decisions.every else decisions.counts - 1
    return replace(decisions, counts=torch.where(final, decisions.counts, full))
