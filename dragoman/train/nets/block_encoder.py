"""A block-causal Transformer encoder with a glimpse ahead: CAAT's (Liu et al. 2021).

States come in blocks of `main`. A block sees all blocks before it (or the last `left` states of
them), itself, and `right` states of the next block. Those states ahead are computed afresh for each
block that glimpses them: their keys see no further than the block's own glimpse, so nothing leaks
through the layers. Training lays the glimpses out beside the states, [S + blocks * right], under
one mask; listening block by block gives the same numbers:

    caches = encoder.begin(batch)
    states, *caches = encoder.hear(frames, *caches)   # frames of one block and its glimpse
    keep the first `main` states and cut the caches back to them: `encoder.keep`

Positions are learnt distances, clipped, so a talk may go on for ever.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.train.nets.base import Encoded, FeatureNorm
from dragoman.train.nets.layers import (
    EncoderLayer,
    LayerConfig,
    SelfAttention,
    as_bias,
    attend,
    join_heads,
    linear,
    split_heads,
)


@dataclass(frozen=True)
class Blocks:
    """Sizes in states (of four frames)."""

    main: int = 8
    right: int = 4
    left: int = 0  # 0: everything
    reach: int = 32  # distances beyond this look alike


class CachedLayer(EncoderLayer):
    """An encoder layer that also takes and gives the keys and values of its self-attention."""

    def forward(
        self,
        x: Tensor,
        bias: Tensor | tuple[Tensor, Tensor],
        past: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x [B, T, D], past [B, H, P, K] twice -> [B, T, D], keys and values [B, H, P + T, K]"""
        y, cache = self.attention(self.attention_norm(x) if self.pre_norm else x, bias, past)
        x = self._add(x, y, self.attention_norm)
        y = self.feed_forward(self.feed_forward_norm(x) if self.pre_norm else x)
        return self._add(x, y, self.feed_forward_norm), cache

    def _add(self, x: Tensor, y: Tensor, norm: nn.LayerNorm) -> Tensor:
        x = x + self.dropout(y)
        return x if self.pre_norm else norm(x)


class DistanceAttention(SelfAttention):
    """Self-attention with a learnt vector per clipped distance (Shaw 2018), shared by heads."""

    def __init__(self, config: LayerConfig, reach: int):
        super().__init__(config)
        self.reach = reach
        self.distance = nn.Embedding(2 * reach + 1, config.size // config.heads)
        nn.init.normal_(self.distance.weight, std=(config.size // config.heads) ** -0.5)

    def forward(
        self,
        x: Tensor,
        bias: tuple[Tensor, Tensor],
        past: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """bias: what is hidden, and the distance from every query to every key [T, P + T]"""
        hidden, distances = bias
        query, key, value = (split_heads(p, self.heads) for p in self.qkv(x).chunk(3, dim=-1))
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        nearness = (query * query.shape[-1] ** -0.5) @ self.distance.weight.t()  # [B, H, T, 2r+1]
        index = distances.clamp(-self.reach, self.reach) + self.reach
        near = nearness.gather(-1, index.expand(*nearness.shape[:2], -1, -1))
        y = attend(query, key, value, near + hidden, self.dropout if self.training else 0.0)
        return self.out(join_heads(y)), (key, value)


class Stem(nn.Module):
    """Two 3x3 convolutions of time stride two, unpadded: state s hears frames 4 s to 4 s + 6."""

    frames = 7  # that the first state needs; each further one needs 4 more

    def __init__(self, features: int, channels: int, size: int):
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, stride=(2, 1), padding=(0, 1))
        self.second = nn.Conv2d(channels, channels, 3, stride=(2, 1), padding=(0, 1))
        self.out = linear(channels * features, size)

    def forward(self, features: Tensor) -> Tensor:
        """[B, T, F] -> [B, (T - 3) // 4, D]"""
        x = self.first(features.unsqueeze(1)).relu()
        x = self.second(x).relu()
        return self.out(x.transpose(1, 2).flatten(2))


class BlockEncoder(nn.Module):
    """Speech [B, T, F] -> states of 40 ms that see one block and a glimpse ahead."""

    def __init__(
        self, features: int, channels: int, layers: int, config: LayerConfig, blocks: Blocks
    ):
        super().__init__()
        self.config, self.blocks = config, blocks
        self.feature_norm = FeatureNorm(features)
        self.stem = Stem(features, channels, config.size)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(
            CachedLayer(config, DistanceAttention(config, blocks.reach)) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(config.size) if config.pre_norm else nn.Identity()

    def forward(self, features: Tensor, lengths: Tensor) -> Encoded:
        """All at once: [B, T, F] -> [B, S, D] under the mask of blocks and glimpses"""
        short = max(0, self.stem.frames - features.shape[1])
        x = self.stem(F.pad(self.feature_norm(features, lengths), (0, 0, 0, short)))
        lengths = ((lengths - 3) // 4).clamp(min=1)
        main, right, size = self.blocks.main, self.blocks.right, x.shape[1]
        count = (size + main - 1) // main
        ahead = torch.arange(count, device=x.device).unsqueeze(1) * main + main
        ahead = (ahead + torch.arange(right, device=x.device)).flatten()  # [count * right]
        place = torch.cat([torch.arange(size, device=x.device), ahead])
        x = self.dropout(x[:, place.clamp(max=size - 1)])
        visible = self._visible(place, size) & (place < lengths.view(-1, 1, 1))
        bias = (as_bias(visible).unsqueeze(1), place - place.unsqueeze(1))
        for layer in self.layers:
            x, _ = layer(x, bias)
        return Encoded(self.norm(x[:, :size]), lengths)

    def _visible(self, place: Tensor, size: int) -> Tensor:
        """Who sees whom among [S states, glimpses]: [S + R, S + R]"""
        main, right, left = self.blocks.main, self.blocks.right, self.blocks.left
        glimpse = torch.arange(len(place), device=place.device) >= size
        caster = torch.arange(len(place) - size, device=place.device) // max(1, right)
        block = torch.cat([place[:size] // main, caster])
        mine, theirs = block.unsqueeze(1), block
        before = theirs <= mine
        if left:
            before = before & (place >= mine * main - left)
        return torch.where(glimpse, theirs == mine, before)

    # ------------------------------------------------------------ block by block

    def begin(self, batch: int) -> tuple[Tensor, Tensor]:
        """Empty keys and values: [B, L, H, 0, K]"""
        config = self.config
        shape = (batch, len(self.layers), config.heads, 0, config.size // config.heads)
        return self.stem.out.weight.new_zeros(shape), self.stem.out.weight.new_zeros(shape)

    def hear(self, frames: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Frames [B, T, F] of a block and its glimpse -> states [B, N, D] and all keys, values.

        T = 4 N + 3, N = main + right (fewer at the end). The glimpse's part of all three is to be
        thrown away; `keep` does.
        """
        lengths = torch.full_like(frames[:, 0, 0], frames.shape[1])
        x = self.stem(self.feature_norm(frames, lengths))
        past, new = keys.shape[3], x.shape[1]
        key_place = torch.arange(past + new, device=x.device)
        distances = key_place - (past + torch.arange(new, device=x.device)).unsqueeze(1)
        bias = (torch.zeros_like(distances, dtype=x.dtype), distances)
        kept = []
        for i, layer in enumerate(self.layers):
            x, cache = layer(x, bias, (keys[:, i], values[:, i]))
            kept.append(cache)
        all_keys, all_values = (torch.stack(kind, dim=1) for kind in zip(*kept, strict=True))
        return self.norm(x), all_keys, all_values

    def keep(self, cache: Tensor, past: int, states: int) -> Tensor:
        """A cache [B, L, H, past + N, K] cut to what the next block may see."""
        end = past + states
        begin = max(0, end - self.blocks.left) if self.blocks.left else 0
        return cache[:, :, :, begin:end]
