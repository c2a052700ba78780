"""Latency as a loss, on expected delays.

A delay d_i is how many source states are read before unit i is written (1-based i; any other unit
will do if source lengths use it too). gamma = I / J is how many units a state is worth.

    AL  = 1/tau sum_{i<=tau} [d_i - (i-1)/gamma]        tau = first i with d_i >= J
    DAL = 1/I sum_i [d'_i - (i-1)/gamma]                d'_i = max(d_i, d'_{i-1} + 1/gamma)

With x_i = d_i - (i-1)/gamma, d'_i - (i-1)/gamma = max(x_i, x_1 .. x_{i-1}): DAL is the mean of the
running maximum of x.

An MMA decoder has one delay per head of every layer; Ma et al. 2020 fold them into one,
g_i = sum_h softmax_h(d_i) d_i, take its latency, and measure how far the heads drift apart.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dragoman.train.nets.layers import valid
from dragoman.train.settings import Count, Level

NEAR = 0.5  # of a state: how near to all of them a delay is that counts as having read everything


def average_lagging(delays: Tensor, source: Tensor, units: Tensor) -> Tensor:
    """delays [B, U], source lengths [B], target lengths [B] -> AL of each sentence [B].

    An expected delay comes close to J but rarely reaches it. tau is a constant of the sentence,
    without gradient.
    """
    lag, real = _lag(delays, source, units)
    done = (delays >= source.unsqueeze(1) - NEAR) & real
    before = (done.cumsum(1) - done.int()) == 0  # up to and including the first unit that is done
    counted = before & real
    return (lag * counted).sum(1) / counted.sum(1).clamp(min=1)


def differentiable_average_lagging(delays: Tensor, source: Tensor, units: Tensor) -> Tensor:
    """delays [B, U], source lengths [B], target lengths [B] -> DAL of each sentence [B]"""
    lag, real = _lag(delays, source, units)
    return (lag.cummax(1).values * real).sum(1) / units.clamp(min=1)


def _lag(delays: Tensor, source: Tensor, units: Tensor) -> tuple[Tensor, Tensor]:
    """d_i - (i-1) J/I [B, U], and which units are no padding [B, U]"""
    index = torch.arange(delays.shape[1], device=delays.device)
    per_unit = (source / units.clamp(min=1)).unsqueeze(1)
    return delays.float() - index * per_unit, valid(units, delays.shape[1])


def fold_heads(delays: Tensor) -> Tensor:
    """The heads' weighted average: [B, N, U] -> [B, U]. The slowest heads weigh most."""
    delays = delays.float()
    return (delays.softmax(1) * delays).sum(1)


def head_variance(delays: Tensor, units: Tensor) -> Tensor:
    """How far heads drift apart: variance over heads, mean over units: [B, N, U], [B] -> [B]"""
    variance = delays.float().var(dim=1, correction=0)
    return (variance * valid(units, delays.shape[2])).sum(1) / units.clamp(min=1)


METRICS = {"al": average_lagging, "dal": differentiable_average_lagging}


@dataclass(frozen=True)
class LatencyLoss:
    """average C(fold(d)) + variance Var(d), summed over sentences; silent before step `after`.

    The papers train to convergence without latency, then switch it on (Ma 2020: average .001-.1
    with AL; Zaidi 2022: .01, .05, .1 with DAL). MMA-IL uses `average`, MMA-H `variance`. Sentences
    already ahead of the ideal (negative latency) are left alone.
    """

    average: Level = 0.0
    variance: Level = 0.0
    metric: Literal["al", "dal"] = "dal"
    after: Count = 0

    def counts(self, step: int) -> bool:
        return step >= self.after and bool(self.average or self.variance)

    def __call__(self, delays: Tensor, source: Tensor, units: Tensor, step: int) -> Tensor:
        """delays of all heads [B, N, U], source lengths [B], target lengths [B] -> scalar"""
        if not self.counts(step):
            return delays.new_zeros(())
        loss = delays.new_zeros(len(delays), dtype=torch.float32)
        if self.average:
            latency = METRICS[self.metric](fold_heads(delays), source, units)
            loss = loss + self.average * latency.clamp(min=0)
        if self.variance:
            loss = loss + self.variance * head_variance(delays, units)
        return loss.sum()
