"""An encoder that hears chunk by chunk at constant cost: the future work of Ma et al. 2020.

A Conformer whose states come in chunks. A state sees its whole chunk, `right` states of look-ahead
and `left` states of the past, never more; so a chunk costs the same after ten minutes as after
ten seconds. The look-ahead is processed once with each chunk and thrown away (as in Emformer):
it does not add up from layer to layer, and a chunk's states never change once they are made.

Trained with a different context for every batch, one net serves every latency. In training all
chunks run at once under a mask; `hear` runs one chunk from caches; the two are equal.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from msgspec import Meta
from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.train.nets.base import Encoded, FeatureNorm, Vocabularies
from dragoman.train.nets.blocks import Blocks, Context
from dragoman.train.nets.boundaries import BoundaryHead
from dragoman.train.nets.conformer import ConformerLayer
from dragoman.train.nets.ctc import CtcHead
from dragoman.train.nets.decoder import TransformerDecoded, TransformerDecoder
from dragoman.train.nets.layers import (
    as_bias,
    attend,
    join_heads,
    linear,
    scaled,
    split_heads,
    valid,
)
from dragoman.train.nets.relative import RotaryAttention, rotate, rotations
from dragoman.train.nets.transformer import TransformerConfig
from dragoman.train.settings import Count, Whole

Sizes = Annotated[tuple[Whole, ...], Meta(min_length=1)]
Counts = Annotated[tuple[Count, ...], Meta(min_length=1)]


@dataclass(frozen=True)
class IncrementalConfig(TransformerConfig):
    """`chunk`, `right`, `left` are what the net runs with, the lists what it is trained with."""

    conv_channels: Whole = 128
    encoder_ffn: Whole = 1024
    decoder_heads: Whole = 8
    ctc_layer: Count = 12
    boundaries: bool = True
    kernel: Whole = 15
    chunk: Whole = 8
    right: Count = 4
    left: Count = 128
    train_chunks: Sizes = (4, 8, 16, 32, 1000)  # 1000: all of it
    train_rights: Counts = (0, 2, 4, 8)
    train_lefts: Counts = (64, 128, 256)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ctc_compression:
            raise DragomanError("An incremental encoder cannot compress: set ctc_compression off.")

    @property
    def context(self) -> Context:
        return Context(self.chunk, self.right, self.left)


class Stem(nn.Module):
    """Two unpadded strided convolutions: state i covers frames 4 i to 4 i + 6 and no others."""

    def __init__(self, features: int, channels: int, size: int):
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, stride=2)
        self.second = nn.Conv2d(channels, channels, 3, stride=2)
        self.flatten = linear(channels * (((features - 1) // 2 - 1) // 2), size)

    def forward(self, frames: Tensor) -> Tensor:
        """[B, 4 S + 3, F] -> [B, S, D]"""
        x = F.relu(self.second(F.relu(self.first(frames.unsqueeze(1)))))
        return scaled(self.flatten(x.transpose(1, 2).flatten(2)))


Kept = tuple[Tensor, Tensor, Tensor]  # keys, values and the tail of the convolution


class IncrementalLayer(ConformerLayer):
    """A Conformer layer that works on blocks, or on one block with what it keeps of the past."""

    attention: RotaryAttention

    def forward(  # type: ignore[override]
        self, x: Tensor, blocks: Blocks, turn: tuple[Tensor, Tensor]
    ) -> Tensor:
        """All blocks at once: [B, N * size, D] -> same"""
        x = x + 0.5 * self.dropout(self.first(self.first_norm(x)))
        x = x + self.dropout(self.attention(self.attention_norm(x), blocks.bias, turn))
        gated = self.convolution.gated(self.convolution.norm(x)) * blocks.mask
        y = self.convolve(blocks.with_tail(gated, self.tail), blocks.size)
        y = y.unflatten(0, (x.shape[0], blocks.count)).flatten(1, 2)
        x = x + self.dropout(self.convolution.finish(y, blocks.mask))
        x = x + 0.5 * self.dropout(self.second(self.second_norm(x)))
        return self.norm(x)

    @property
    def tail(self) -> int:
        """How many states before a block its convolution reaches."""
        return self.convolution.depthwise.kernel_size[0] // 2

    def convolve(self, x: Tensor, size: int) -> Tensor:
        """The convolution of blocks behind their tails; after a block it sees zeros."""
        x = F.pad(x, (0, 0, 0, self.tail)).transpose(1, 2)
        return self.convolution.depthwise(x).transpose(1, 2)[:, :size]

    def hear(
        self, x: Tensor, mask: Tensor, bias: Tensor, kept: Kept, chunk: int
    ) -> tuple[Tensor, Kept]:
        """One block x [B, size, D]; `kept` keys and values [B, H, left, K] and tail [B, tail, D].

        Returns the block's states and what to keep for the next one.
        """
        keys, values, tail = kept
        x = x + 0.5 * self.first(self.first_norm(x))
        y, keys, values = self.hear_attention(self.attention_norm(x), bias, keys, values, chunk)
        x = x + y
        gated = self.convolution.gated(self.convolution.norm(x)) * mask
        y = self.convolve(torch.cat([tail, gated], dim=1), x.shape[1])
        tail = torch.cat([tail, gated[:, :chunk]], dim=1)[:, chunk:]
        x = x + self.convolution.finish(y, mask)
        x = x + 0.5 * self.second(self.second_norm(x))
        return self.norm(x), (keys, values, tail)

    def hear_attention(
        self, x: Tensor, bias: Tensor, keys: Tensor, values: Tensor, chunk: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Attention of a block to itself and to what is kept, which stays unrotated: positions
        count from the first kept state, so they never grow with the talk."""
        heads, left = self.attention.heads, keys.shape[2]
        query, key, value = (split_heads(p, heads) for p in self.attention.qkv(x).chunk(3, -1))
        key, value = torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2)
        cos, sin = rotations(torch.arange(key.shape[2], device=x.device), key.shape[3])
        query = rotate(query, (cos[left:], sin[left:]))
        y = attend(query, rotate(key, (cos, sin)), value, bias)
        window = slice(chunk, chunk + left)
        return self.attention.out(join_heads(y)), key[:, :, window], value[:, :, window]


class Incremental(TransformerDecoded):
    """Speech [B, T, F] -> chunks of states, CTC, word ends -> target units."""

    config: IncrementalConfig
    host_decisions = "every batch draws its context on the host"

    def __init__(self, config: IncrementalConfig, vocabularies: Vocabularies):
        super().__init__(config, vocabularies)
        encoder = config.encoder
        self.feature_norm = FeatureNorm(config.features)
        self.stem = Stem(config.features, config.conv_channels, config.size)
        self.dropout = nn.Dropout(config.dropout)
        layers = [
            IncrementalLayer(encoder, config.kernel, RotaryAttention(encoder))
            for _ in range(config.encoder_layers)
        ]
        self.layers, self.tail = nn.ModuleList(layers), layers[0].tail
        self.ctc = CtcHead(config.size, vocabularies.source) if config.ctc_layer else None
        self.boundaries = BoundaryHead(config.size) if config.boundaries else None
        self.decoder = TransformerDecoder(
            vocabularies.target, config.decoder_layers, config.decoder, config.tied_output
        )

    @torch.compiler.disable  # chance is not for a compiled graph
    def draw(self) -> Context:
        """A context for one batch of training."""
        config = self.config
        choices = (config.train_chunks, config.train_rights, config.train_lefts)
        return Context(*(options[int(torch.randint(len(options), ()))] for options in choices))

    def encode(self, features: Tensor, lengths: Tensor, context: Context | None = None) -> Encoded:
        """All at once, as if it had been heard in chunks of `context`."""
        context = context or (self.draw() if self.training else self.config.context)
        frames, states = features.shape[1], (features.shape[1] + 3) // 4
        x = F.pad(self.feature_norm(features, lengths), (0, 0, 0, 4 * states + 3 - frames))
        x, lengths = self.dropout(self.stem(x)), (lengths + 3) // 4
        width = self.config.size // self.config.encoder_heads
        context = replace(context, chunk=min(context.chunk, states))
        blocks = Blocks(context, lengths, states)
        x, turn, logits = blocks.lay(x), rotations(blocks.places, width), None
        for depth, layer in enumerate(self.layers, start=1):
            x = layer(x, blocks, turn)
            if self.ctc is not None and depth == self.config.ctc_layer:
                logits = self.ctc(blocks.chunks(x)[:, :states])
        x = blocks.chunks(x)[:, :states]
        return self.encoded(x, lengths, logits)

    def encoded(self, states: Tensor, lengths: Tensor, logits: Tensor | None) -> Encoded:
        ends = None if self.boundaries is None else self.boundaries(states)
        return Encoded(states, lengths, logits, None if logits is None else lengths, ends)

    def begin_stream(self, batch: int) -> tuple[Tensor, ...]:
        """What is known before anything was heard: keys and values [B, layers, H, left, K],
        convolution tails [B, layers, tail, D], how many kept states are real [B]."""
        config, layers = self.config, len(self.layers)
        make = self.stem.flatten.weight.new_zeros
        kept = (
            batch,
            layers,
            config.encoder_heads,
            config.left,
            config.size // config.encoder_heads,
        )
        tails = make(batch, layers, self.tail, config.size)
        real = torch.zeros(batch, dtype=torch.long, device=tails.device)
        return make(kept), make(kept), tails, real

    def hear(
        self, features: Tensor, frames: Tensor, stream: tuple[Tensor, ...]
    ) -> tuple[Encoded, tuple[Tensor, ...]]:
        """One chunk. features [B, 4 (chunk + right) + 3, F], of which `frames` [B] are real
        (all of them but at the end of the talk); the window moves on by 4 chunk frames.

        Returns the chunk's states [B, chunk, D], final, and the stream after it.
        """
        chunk, right, left = self.config.chunk, self.config.right, self.config.left
        keys, values, tails, real = stream
        x = self.stem(self.feature_norm(features, frames))
        lengths = ((frames + 3) // 4).clamp(max=chunk + right)
        known = valid(lengths, chunk + right)
        past = torch.arange(left, device=x.device) >= left - real.unsqueeze(1)
        bias = as_bias(torch.cat([past, known], dim=1))[:, None, None, :]
        kept, logits = [], None
        layer: Any  # an IncrementalLayer
        for i, layer in enumerate(self.layers):
            before = (keys[:, i], values[:, i], tails[:, i])
            x, now = layer.hear(x, known.unsqueeze(-1), bias, before, chunk)
            kept.append(now)
            if self.ctc is not None and i + 1 == self.config.ctc_layer:
                logits = self.ctc(x[:, :chunk])
        after = tuple(torch.stack(parts, dim=1) for parts in zip(*kept, strict=True))
        encoded = self.encoded(x[:, :chunk], lengths.clamp(max=chunk), logits)
        return encoded, (*after, (real + chunk).clamp(max=left))
