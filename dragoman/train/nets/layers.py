"""The bricks of the Transformer nets: masks, positions, attention, feed-forward, the two layers.

Shapes: B batch, T or S source time, U target units, D model size, H heads, K = D / H.

Every mask is an additive *bias*, 0 where a query may look and `HIDDEN` where it may not,
broadcastable to [B, H, queries, keys]. It is finite, so a row with nothing to see (padding) gives
numbers that nobody reads instead of NaN, and it can be added to any other bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.train.nets.dropout import Dropout
from dragoman.train.nets.dropout import dropout as dropout_of
from dragoman.train.settings import BelowOne

HIDDEN = -1e4  # exp(HIDDEN) is exactly 0 in every floating format
EVEN = 8  # states, and numbers of a head, come in multiples of so many where kernels shall be fast


@dataclass(frozen=True)
class LayerConfig:
    """What a Transformer layer is made of."""

    size: int = 256
    heads: int = 4
    ffn: int = 2048
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.1
    pre_norm: bool = True

    def __post_init__(self) -> None:
        if self.size % self.heads:
            raise ValueError(f"size {self.size} does not divide into {self.heads} heads")


@dataclass(frozen=True)
class LayerSettings:
    """What the settings of a net say about all of its layers."""

    dropout: BelowOne = 0.1
    attention_dropout: BelowOne = 0.1
    activation_dropout: BelowOne = 0.1
    pre_norm: bool = True

    def layer(self, size: int, heads: int, ffn: int) -> LayerConfig:
        """One of them."""
        rates = (self.dropout, self.attention_dropout, self.activation_dropout)
        return LayerConfig(size, heads, ffn, *rates, self.pre_norm)


# ---------------------------------------------------------------- masks


def valid(lengths: Tensor, size: int) -> Tensor:
    """[B] lengths -> [B, size], True where there is something."""
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(1)


def as_bias(visible: Tensor) -> Tensor:
    """True (visible) -> 0, False -> HIDDEN."""
    return torch.where(visible, 0.0, HIDDEN)


def padding_bias(lengths: Tensor, size: int) -> Tensor:
    """Hides the keys past each item's length: [B, 1, 1, size]."""
    return as_bias(valid(lengths, size))[:, None, None, :]


def causal_bias(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """The last `queries` of `keys` positions, each seeing itself and the past: [queries, keys]."""
    last_seen = torch.arange(queries, device=device) + (keys - queries)
    return as_bias(torch.arange(keys, device=device) <= last_seen.unsqueeze(1))


def seen_bias(seen: Tensor, size: int) -> Tensor:
    """Target unit u sees the first seen[b, u] states (wait-k training): [B, U] -> [B, 1, U, size].

    A unit always sees at least one state, so that its attention is defined.
    """
    states = torch.arange(size, device=seen.device)
    return as_bias(states < seen.clamp(min=1).unsqueeze(-1)).unsqueeze(1)


# ---------------------------------------------------------------- positions


def sinusoids(positions: Tensor, size: int) -> Tensor:
    """Sinusoidal encoding of (real, possibly negative) positions [...] -> [..., size]."""
    pairs = torch.arange(size // 2, device=positions.device)
    frequencies = torch.exp(pairs * (-math.log(10000.0) / max(1, size // 2 - 1)))
    angles = positions.unsqueeze(-1).float() * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def scaled(x: Tensor) -> Tensor:
    """[..., D] times the root of D: so large that what layers add does not drown what was heard."""
    return x * math.sqrt(x.shape[-1])


class Embedding(nn.Embedding):
    """Token embeddings, scaled by the root of the size, plus sinusoidal positions."""

    def __init__(self, vocabulary: int, size: int):
        super().__init__(vocabulary, size)
        nn.init.normal_(self.weight, std=size**-0.5)

    def forward(self, tokens: Tensor, offset: int | Tensor = 0) -> Tensor:
        """[B, U] tokens, the first of them at position `offset` -> [B, U, D]"""
        positions = torch.arange(tokens.shape[1], device=tokens.device) + offset
        return scaled(super().forward(tokens)) + sinusoids(positions, self.embedding_dim)


# ---------------------------------------------------------------- attention


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear map with the Transformer's customary start."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def several(x: Tensor, maps: Sequence[nn.Linear]) -> Tensor:
    """What several linear maps make of the same x, side by side, by one matrix product."""
    if len(maps) == 1:
        return maps[0](x)
    weight, bias = torch.cat([m.weight for m in maps]), torch.cat([m.bias for m in maps])
    return F.linear(x, weight, bias)


def for_products(states: Tensor) -> Tensor:
    """States as autocast would cast them for each of many matrix products: once for all."""
    kind = states.device.type
    if not torch.is_autocast_enabled(kind):
        return states
    return states.to(torch.get_autocast_dtype(kind))


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[B, T, D] -> [B, H, T, K]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """[B, H, T, K] -> [B, T, D]"""
    return x.transpose(1, 2).flatten(-2)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """softmax(scale q k' + bias) v by the fastest kernel there is: [B, H, T, K].

    The scale is 1 / sqrt(K) unless given. Exported graphs spell the formula out, and so does what
    is compiled for training: no kernel that takes a bias and dropout is as fast as the compiler's.
    """
    if torch.compiler.is_exporting():
        return attention_weights(query, key, bias, scale) @ value
    if torch.compiler.is_compiling():
        weights = attention_weights(query, key, bias, scale).to(value.dtype)
        return dropout_of(weights, dropout) @ value
    if bias is not None:
        bias = bias.to(query.dtype)
    width = query.shape[-1]
    scale = scale or width**-0.5
    if fast_kernels(query):
        query, key, value = (evenly(x) for x in (query, key, value))
    seen = F.scaled_dot_product_attention(query, key, value, bias, dropout_p=dropout, scale=scale)
    return seen[..., :width]


def fast_kernels(x: Tensor) -> bool:
    """Whether attention has kernels that refuse odd widths; what is left is slow: it keeps all
    scores, in single precision."""
    return x.is_cuda


def evenly(x: Tensor) -> Tensor:
    """Heads [..., K] with zeros behind them, to a multiple of EVEN; no product changes by them."""
    return F.pad(x, (0, -x.shape[-1] % EVEN)) if x.shape[-1] % EVEN else x


def attention_weights(
    query: Tensor, key: Tensor, bias: Tensor | None, scale: float | None = None
) -> Tensor:
    """The weights that `attend` hides, in single precision: [B, H, queries, keys]"""
    scale = scale or query.shape[-1] ** -0.5
    scores = (query @ key.transpose(-1, -2)).float() * scale
    return torch.softmax(scores if bias is None else scores + bias, dim=-1)


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself, with a cache of past keys and values."""

    def __init__(self, config: LayerConfig):
        super().__init__()
        self.heads, self.dropout = config.heads, config.attention_dropout
        self.qkv = linear(config.size, 3 * config.size)
        self.out = linear(config.size, config.size)

    def forward(
        self, x: Tensor, bias: Tensor | None = None, past: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x [B, T, D], past keys and values [B, H, P, K] -> [B, T, D] and all P + T of them."""
        query, key, value = (split_heads(p, self.heads) for p in self.qkv(x).chunk(3, dim=-1))
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        y = attend(query, key, value, bias, self.dropout if self.training else 0.0)
        return self.out(join_heads(y)), (key, value)


class CrossAttention(nn.Module):
    """Multi-head attention of the target to encoder states, projected once per encoding."""

    def __init__(self, config: LayerConfig):
        super().__init__()
        self.heads, self.dropout = config.heads, config.attention_dropout
        self.query = linear(config.size, config.size)
        self.key_value = linear(config.size, 2 * config.size)
        self.out = linear(config.size, config.size)

    def project(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Encoder states [B, S, D] -> keys and values [B, H, S, K]"""
        key, value = (split_heads(p, self.heads) for p in self.key_value(states).chunk(2, dim=-1))
        return key, value

    def forward(
        self, x: Tensor, memory: tuple[Tensor, Tensor], bias: Tensor | None = None
    ) -> Tensor:
        """x [B, U, D] attends to projected states: [B, U, D]"""
        query = split_heads(self.query(x), self.heads)
        y = attend(query, *memory, bias, self.dropout if self.training else 0.0)
        return self.out(join_heads(y))

    def explain(
        self, x: Tensor, memory: tuple[Tensor, Tensor], bias: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As forward, and the attention averaged over heads: [B, U, D], [B, U, S]"""
        query = split_heads(self.query(x), self.heads)
        weights = attention_weights(query, memory[0], bias)
        y = weights.to(memory[1].dtype) @ memory[1]
        return self.out(join_heads(y)), weights.mean(dim=1)


# ---------------------------------------------------------------- layers


class FeedForward(nn.Module):
    """Two linear maps with a non-linearity between: [..., D] -> [..., D]"""

    def __init__(self, config: LayerConfig, activation: nn.Module | None = None):
        super().__init__()
        self.wide = linear(config.size, config.ffn)
        self.activation = activation or nn.ReLU()
        self.dropout = Dropout(config.activation_dropout)
        self.narrow = linear(config.ffn, config.size)

    def forward(self, x: Tensor) -> Tensor:
        return self.narrow(self.dropout(self.activation(self.wide(x))))


class Residual(nn.Module):
    """A layer of branches, each added to its own input: normalised before (pre) or after (post)."""

    pre_norm: bool
    dropout: nn.Module

    def enter(self, x: Tensor, norm: nn.Module) -> Tensor:
        """What a branch is given."""
        return norm(x) if self.pre_norm else x

    def add(self, x: Tensor, branch: Tensor, norm: nn.Module) -> Tensor:
        """The input of a branch and what the branch made of it."""
        x = x + self.dropout(branch)
        return x if self.pre_norm else norm(x)


class EncoderLayer(Residual):
    """Self-attention, then feed-forward."""

    def __init__(self, config: LayerConfig, attention: nn.Module | None = None):
        super().__init__()
        self.pre_norm = config.pre_norm
        self.attention = attention or SelfAttention(config)
        self.feed_forward = FeedForward(config)
        self.attention_norm = nn.LayerNorm(config.size)
        self.feed_forward_norm = nn.LayerNorm(config.size)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, bias: Any = None) -> Tensor:
        """[B, T, D] -> [B, T, D]"""
        return self.going_on(x, bias)[0]

    def going_on(
        self, x: Tensor, bias: Any, past: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x [B, T, D] behind `past` keys and values [B, H, P, K] -> [B, T, D] and all P + T of
        them; the bias is what the attention takes."""
        around = () if past is None else (past,)
        y, kept = self.attention(self.enter(x, self.attention_norm), bias, *around)
        x = self.add(x, y, self.attention_norm)
        y = self.feed_forward(self.enter(x, self.feed_forward_norm))
        return self.add(x, y, self.feed_forward_norm), kept


class DecoderLayer(Residual):
    """Causal self-attention, attention to the source, feed-forward.

    `cross` may be any module that is called as (x, memory, bias): monotonic attention is one.
    """

    def __init__(self, config: LayerConfig, cross: nn.Module | None = None):
        super().__init__()
        self.pre_norm = config.pre_norm
        self.attention = SelfAttention(config)
        self.cross: Any = cross or CrossAttention(config)
        self.feed_forward = FeedForward(config)
        self.attention_norm = nn.LayerNorm(config.size)
        self.cross_norm = nn.LayerNorm(config.size)
        self.feed_forward_norm = nn.LayerNorm(config.size)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: tuple[Tensor, Tensor],
        self_bias: Tensor | None,
        cross_bias: Tensor | None,
        past: tuple[Tensor, Tensor] | None = None,
        explain: bool = False,
    ) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor | None]:
        """x [B, U, D] -> x, the keys and values to cache, cross attention [B, U, S] if asked."""
        y, cache = self.attention(self.enter(x, self.attention_norm), self_bias, past)
        x = self.add(x, y, self.attention_norm)
        entering, attention = self.enter(x, self.cross_norm), None
        if explain:
            y, attention = self.cross.explain(entering, memory, cross_bias)
        else:
            y = self.cross(entering, memory, cross_bias)
        x = self.add(x, y, self.cross_norm)
        y = self.feed_forward(self.enter(x, self.feed_forward_norm))
        return self.add(x, y, self.feed_forward_norm), cache, attention
