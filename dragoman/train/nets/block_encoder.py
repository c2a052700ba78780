"""A block-causal Transformer encoder with a glimpse ahead: CAAT's (Liu et al. 2021).

States come in chunks. A chunk sees the last `left` states before it, itself, and `right` states of
the next one. Those states ahead are computed afresh for each chunk that glimpses them: they see no
further than the chunk's own glimpse, so nothing leaks through the layers. Training lays the
glimpses out beside the states, [S + chunks * right], under one mask; `hear` takes one chunk at a
time from caches of fixed size, and returns the same numbers.

Positions are learnt distances, clipped, so a talk may go on for ever.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.train.nets.base import Encoded, FeatureNorm
from dragoman.train.nets.blocks import Context
from dragoman.train.nets.layers import (
    EncoderLayer,
    LayerConfig,
    SelfAttention,
    as_bias,
    attend,
    join_heads,
    linear,
    scaled,
    split_heads,
    valid,
)


class DistanceAttention(SelfAttention):
    """Self-attention with a learnt vector per clipped distance (Shaw 2018), shared by heads."""

    def __init__(self, config: LayerConfig, reach: int):
        super().__init__(config)
        self.distance = nn.Embedding(2 * reach + 1, config.size // config.heads)
        nn.init.normal_(self.distance.weight, std=(config.size // config.heads) ** -0.5)

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        bias: tuple[Tensor, Tensor],
        past: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """bias: what is hidden, and `at_distance` of every query and key [T, 2 r + 1, P + T]

        Each query's score for a distance is put where a key is that far by a product with zeros
        and ones: it has a gradient that no two threads quarrel about.
        """
        hidden, places = bias
        query, key, value = (split_heads(p, self.heads) for p in self.qkv(x).chunk(3, dim=-1))
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        nearness = (query * query.shape[-1] ** -0.5) @ self.distance.weight.t()  # [B, H, T, 2r+1]
        near = torch.einsum("bhtd,tds->bhts", nearness, places.to(nearness.dtype))
        y = attend(query, key, value, near + hidden, self.dropout if self.training else 0.0)
        return self.out(join_heads(y)), (key, value)


def at_distance(distances: Tensor, reach: int, dtype: torch.dtype) -> Tensor:
    """1 where a key is at a (clipped) distance of a query: [T, S] -> [T, 2 reach + 1, S]"""
    known = torch.arange(-reach, reach + 1, device=distances.device)
    return (distances.clamp(-reach, reach).unsqueeze(1) == known.unsqueeze(1)).to(dtype)


class Stem(nn.Module):
    """Two 3x3 convolutions of time stride two, unpadded: state s hears frames 4 s to 4 s + 6."""

    def __init__(self, features: int, channels: int, size: int):
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, stride=(2, 1), padding=(0, 1))
        self.second = nn.Conv2d(channels, channels, 3, stride=(2, 1), padding=(0, 1))
        self.out = linear(channels * features, size)

    def forward(self, features: Tensor) -> Tensor:
        """[B, 4 S + 3, F] -> [B, S, D]"""
        x = F.relu(self.second(F.relu(self.first(features.unsqueeze(1)))))
        return scaled(self.out(x.transpose(1, 2).flatten(2)))


class BlockEncoder(nn.Module):
    """Speech [B, T, F] -> states of four frames that see one chunk and a glimpse ahead."""

    def __init__(
        self,
        features: int,
        channels: int,
        layers: int,
        config: LayerConfig,
        context: Context,
        reach: int,
    ):
        super().__init__()
        self.config, self.context, self.reach = config, context, reach
        self.feature_norm = FeatureNorm(features)
        self.stem = Stem(features, channels, config.size)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(config, DistanceAttention(config, reach)) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(config.size) if config.pre_norm else nn.Identity()

    def forward(self, features: Tensor, lengths: Tensor) -> Encoded:
        """All at once: [B, T, F] -> [B, S, D] under the mask of chunks and glimpses"""
        frames, states = features.shape[1], (features.shape[1] + 3) // 4
        x = F.pad(self.feature_norm(features, lengths), (0, 0, 0, 4 * states + 3 - frames))
        x, lengths = self.stem(x), (lengths + 3) // 4
        place, chunk = self._layout(states, x.device)
        x = self.dropout(x[:, place.clamp(max=states - 1)])
        visible = self._visible(place, chunk, states) & (place < lengths.view(-1, 1, 1))
        places = at_distance(place - place.unsqueeze(1), self.reach, x.dtype)
        bias = (as_bias(visible).unsqueeze(1), places)
        for layer in self.layers:
            x = layer(x, bias)
        return Encoded(self.norm(x[:, :states]), lengths)

    def _layout(self, states: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """The states, then every chunk's glimpse: where in time each stands, whose chunk it is."""
        size, right = self.context.chunk, self.context.right
        now = torch.arange(states, device=device)
        chunks = torch.arange((states + size - 1) // size, device=device)
        ahead = (chunks.unsqueeze(1) + 1) * size + torch.arange(right, device=device)
        place = torch.cat([now, ahead.flatten()])
        return place, torch.cat([now // size, chunks.repeat_interleave(right)])

    def _visible(self, place: Tensor, chunk: Tensor, states: int) -> Tensor:
        """Who sees whom: [N, N] for the N places of `_layout`"""
        mine = chunk.unsqueeze(1)
        recent = place >= mine * self.context.chunk - self.context.left
        glimpse = torch.arange(len(place), device=place.device) >= states
        return torch.where(glimpse, chunk == mine, (chunk <= mine) & recent)

    # ------------------------------------------------------------ chunk by chunk

    def begin_stream(self, batch: int) -> tuple[Tensor, ...]:
        """Empty keys and values [B, L, H, left, K], and how many of the kept are real [B]"""
        config, make = self.config, self.stem.out.weight.new_zeros
        width = config.size // config.heads
        shape = (batch, len(self.layers), config.heads, self.context.left, width)
        real = torch.zeros(batch, dtype=torch.long, device=self.stem.out.weight.device)
        return make(shape), make(shape), real

    def hear(
        self, features: Tensor, frames: Tensor, stream: tuple[Tensor, ...]
    ) -> tuple[Encoded, tuple[Tensor, ...]]:
        """One chunk. features [B, 4 (chunk + right) + 3, F], of which `frames` [B] are real (all
        of them but at the end of the talk); the window moves on by 4 chunk frames.

        Returns the chunk's states [B, chunk, D], final, and the stream after it.
        """
        keys, values, real = stream
        chunk, left = self.context.chunk, self.context.left
        size = chunk + self.context.right
        x = self.stem(self.feature_norm(features, frames))
        lengths = ((frames + 3) // 4).clamp(max=size)
        place = torch.arange(left + size, device=x.device)
        kept_real = place[:left] >= left - real.unsqueeze(1)
        visible = torch.cat([kept_real, valid(lengths, size)], dim=1)
        places = at_distance(place - place[left:].unsqueeze(1), self.reach, x.dtype)
        bias = (as_bias(visible)[:, None, None], places)
        kept = []
        layer: Any  # an EncoderLayer
        for i, layer in enumerate(self.layers):
            x, pair = layer.going_on(x, bias, (keys[:, i], values[:, i]))
            kept.append([cache[:, :, chunk : chunk + left] for cache in pair])
        after = tuple(torch.stack(parts, dim=1) for parts in zip(*kept, strict=True))
        encoded = Encoded(self.norm(x[:, :chunk]), lengths.clamp(max=chunk))
        return encoded, (*after, (real + chunk).clamp(max=left))
