"""Self-attention that knows distances: Transformer-XL's relative positions, or rotary ones.

Relative positions (Dai et al. 2019) score a query and a key at distance d by
    (q + u)·k + (q + v)·(W r_d)
with sinusoids r_d and learnt u, v. The second term is one matrix product per layer over the
2T distances, then a *view* that shifts row i by i; the fused attention kernel takes it as a bias.
Rotary positions (Su et al. 2021) turn q and k by their positions instead: no bias, less memory.
"""

import math

import torch
from torch import Tensor, nn

from dragoman.train.nets.layers import (
    LayerConfig,
    SelfAttention,
    attend,
    join_heads,
    linear,
    sinusoids,
    split_heads,
)


def distances(queries: int, size: int, device: torch.device | None = None) -> Tensor:
    """Sinusoids of the distances Q - 1 ... -Q, far past first: [2 Q, D]"""
    steps = torch.arange(queries - 1, -queries - 1, -1, device=device)
    return sinusoids(steps, size)


def shift(scores: Tensor) -> Tensor:
    """Scores by distance -> scores by key: [B, H, T, 2 T] -> [B, H, T, T], without a copy.

    Query i finds key j at column T - 1 - i + j. Read flat from T - 1 on, in rows of 2 T - 1,
    every row starts at its own key 0.
    """
    batch, heads, size, distances = scores.shape
    flat = scores.flatten(-2)[..., size - 1 : -1]
    return flat.reshape(batch, heads, size, distances - 1)[..., :size]


def with_all(query: Tensor, places: Tensor) -> Tensor:
    """Each head's products with what all items share, [B, H, T, K] x [H, K, N] -> [B, H, T, N]: a
    large one for each head instead of a small one for each item, for which places were copied."""
    rows = query.transpose(0, 1).flatten(1, 2)  # [H, B T, K]
    return (rows @ places).unflatten(1, (query.shape[0], query.shape[2])).transpose(0, 1)


class RelativeAttention(SelfAttention):
    """Multi-head self-attention with relative sinusoidal positions."""

    def __init__(self, config: LayerConfig):
        super().__init__(config)
        self.position = linear(config.size, config.size, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(config.size))  # u
        self.position_bias = nn.Parameter(torch.zeros(config.size))  # v

    def forward(  # type: ignore[override]
        self, x: Tensor, bias: Tensor, table: Tensor
    ) -> Tensor:
        """x [B, T, D], bias (padding), table [2 T, D] of `distances` -> [B, T, D]"""
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        by_content = split_heads(query + self.content_bias, self.heads)
        by_position = split_heads(query + self.position_bias, self.heads)
        places = split_heads(self.position(table.to(x.dtype)).unsqueeze(0), self.heads)
        scores = shift(with_all(by_position, places[0].transpose(-1, -2)))  # [B, H, T, T]
        scores = scores * (1 / math.sqrt(by_position.shape[-1])) + bias.to(scores.dtype)
        key, value = split_heads(key, self.heads), split_heads(value, self.heads)
        y = attend(by_content, key, value, scores, self.dropout if self.training else 0.0)
        return self.out(join_heads(y))


def rotations(positions: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines that turn the pairs of a head of this width: [T, width / 2] each"""
    pairs = torch.arange(width // 2, device=positions.device)
    angles = positions.unsqueeze(-1).float() * torch.exp(pairs * (-2 * math.log(1e4) / width))
    return angles.cos(), angles.sin()


def rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Turns the first half of each head against the second half: [B, H, T, K] -> same"""
    cos, sin = (part.to(x.dtype) for part in turn)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class RotaryAttention(SelfAttention):
    """Multi-head self-attention with rotary positions."""

    def forward(  # type: ignore[override]
        self, x: Tensor, bias: Tensor, table: tuple[Tensor, Tensor]
    ) -> Tensor:
        """x [B, T, D], bias, table of `rotations` for T positions -> [B, T, D]"""
        query, key, value = (split_heads(p, self.heads) for p in self.qkv(x).chunk(3, dim=-1))
        query, key = rotate(query, table), rotate(key, table)
        y = attend(query, key, value, bias, self.dropout if self.training else 0.0)
        return self.out(join_heads(y))
