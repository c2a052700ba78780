"""CAAT, the cross-attention augmented transducer (Liu et al. 2021): encoder, predictor, joiner.

The predictor reads what was written (self-attention only), the joiner lets it attend to the source
(cross-attention only). The source is released in groups of `decision` states; for every group the
net says what it would write next, or *blank*: read on. Training sums over all ways to interleave
reading and writing (`losses.transducer`):

    lattice = net.lattice(tokens, encoded)      # hidden [B, G, U + 1, D]

To the rest of the world it is a net like any other: `step` tells what follows, with as much of the
source as `lengths` says. Blank is BOS, which is never written.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.models.exported.net import BOS
from dragoman.train.nets.base import Encoded, Net, Step, Vocabularies
from dragoman.train.nets.block_encoder import BlockEncoder
from dragoman.train.nets.blocks import Context
from dragoman.train.nets.decoder import project
from dragoman.train.nets.layers import (
    CrossAttention,
    Embedding,
    EncoderLayer,
    FeedForward,
    LayerConfig,
    LayerSettings,
    Residual,
    as_bias,
    causal_bias,
    linear,
    padding_bias,
)
from dragoman.train.settings import BelowOne, Count, Whole

BLANK = BOS


@dataclass(frozen=True)
class CaatConfig(LayerSettings):
    features: Whole = 80
    conv_channels: Whole = 128
    size: Whole = 256
    encoder_layers: Whole = 12
    predictor_layers: Whole = 6
    joiner_layers: Whole = 6
    heads: Whole = 4
    encoder_ffn: Whole = 2048
    decoder_ffn: Whole = 1024
    dropout: BelowOne = 0.3
    chunk: Whole = 8  # states the encoder takes at a time (32 frames)
    right: Count = 4  # states it glimpses ahead
    left: Count = 256  # states it remembers
    reach: Count = 32  # distances beyond this look alike
    decision: Whole = 32  # states in a group: 16, 32, 64 or 80 (.64 to 3.2 s)

    @property
    def context(self) -> Context:
        return Context(self.chunk, self.right, self.left)


@dataclass(frozen=True)
class Lattice:
    """What the joiner makes of every group and every number of tokens written."""

    hidden: Tensor  # [B, G, U + 1, D]
    groups: Tensor  # [B] groups of each item

    @property
    def whole(self) -> Tensor:
        """The last group of each item, which sees all the source: [B, U + 1, D]"""
        item = torch.arange(len(self.groups), device=self.groups.device)
        return self.hidden[item, self.groups - 1]


class JoinerLayer(Residual):
    """Cross-attention and feed-forward, without self-attention."""

    def __init__(self, config: LayerConfig):
        super().__init__()
        self.pre_norm = config.pre_norm
        self.cross = CrossAttention(config)
        self.feed_forward = FeedForward(config)
        self.cross_norm = nn.LayerNorm(config.size)
        self.feed_forward_norm = nn.LayerNorm(config.size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, memory: tuple[Tensor, Tensor], bias: Tensor, explain: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """x [B, U, D] -> [B, U, D], and its attention [B, U, S] if asked"""
        entering, attention = self.enter(x, self.cross_norm), None
        if explain:
            y, attention = self.cross.explain(entering, memory, bias)
        else:
            y = self.cross(entering, memory, bias)
        x = self.add(x, y, self.cross_norm)
        y = self.feed_forward(self.enter(x, self.feed_forward_norm))
        return self.add(x, y, self.feed_forward_norm), attention


class Caat(Net):
    """Speech [B, T, F] -> states -> target units or blank."""

    config: CaatConfig
    host_decisions = "gradients compute parts of the transducer's lattice again"

    memory_time = 3
    keeps_past = True
    decides = "transducer"
    source_rows = ()
    target_rows = ("embedding", "output")

    def __init__(self, config: CaatConfig, vocabularies: Vocabularies):
        super().__init__(config, vocabularies)
        encoder = config.layer(config.size, config.heads, config.encoder_ffn)
        decoder = config.layer(config.size, config.heads, config.decoder_ffn)
        self.encoder = BlockEncoder(
            config.features,
            config.conv_channels,
            config.encoder_layers,
            encoder,
            config.context,
            config.reach,
        )
        self.embedding = Embedding(vocabularies.target, config.size)
        self.dropout = nn.Dropout(config.dropout)
        self.predictor = nn.ModuleList(
            EncoderLayer(decoder) for _ in range(config.predictor_layers)
        )
        self.joiner = nn.ModuleList(JoinerLayer(decoder) for _ in range(config.joiner_layers))
        self.norm = nn.LayerNorm(config.size) if config.pre_norm else nn.Identity()
        self.output = linear(config.size, vocabularies.target, bias=False)
        nn.init.normal_(self.output.weight, std=config.size**-0.5)

    @property
    def feature_norm(self) -> nn.Module:
        return self.encoder.feature_norm

    def encode(self, features: Tensor, lengths: Tensor) -> Encoded:
        return self.encoder(features, lengths)

    def begin_stream(self, batch: int) -> tuple[Tensor, ...]:
        return self.encoder.begin_stream(batch)

    def hear(
        self, features: Tensor, frames: Tensor, stream: tuple[Tensor, ...]
    ) -> tuple[Encoded, tuple[Tensor, ...]]:
        """One chunk of speech, as the incremental encoder's."""
        return self.encoder.hear(features, frames, stream)

    # ------------------------------------------------------------ teacher forcing

    def lattice(self, tokens: Tensor, encoded: Encoded) -> Lattice:
        """tokens [B, U + 1]: BOS and the U target tokens, EOS last."""
        step, (items, cells), states = self.config.decision, tokens.shape, encoded.states.shape[1]
        most = (states + step - 1) // step
        seen = torch.arange(1, most + 1, device=tokens.device) * step
        seen = torch.minimum(seen, encoded.lengths.unsqueeze(1))  # [B, G]
        state = torch.arange(states, device=tokens.device)
        bias = as_bias(state < seen.unsqueeze(-1))  # [B, G, S]
        x = self._predict(tokens).unsqueeze(1).expand(-1, most, -1, -1).flatten(1, 2)
        x = self._join(x, encoded.states, bias.repeat_interleave(cells, dim=1).unsqueeze(1))
        return Lattice(x.view(items, most, cells, -1), (encoded.lengths + step - 1) // step)

    def decode(self, tokens: Tensor, encoded: Encoded, cross_bias: Tensor | None = None) -> Tensor:
        bias = encoded.bias if cross_bias is None else encoded.bias + cross_bias
        return self.output(self._join(self._predict(tokens), encoded.states, bias))

    def following(self, tokens: Tensor, written: Tensor, encoded: Encoded) -> Tensor:
        """tokens [B, U], of which `written` [B] count -> logits of what follows them [B, V]"""
        item = torch.arange(len(tokens), device=tokens.device)
        last = self._predict(tokens)[item, written - 1].unsqueeze(1)
        return self.output(self._join(last, encoded.states, encoded.bias)).squeeze(1)

    def _predict(self, tokens: Tensor) -> Tensor:
        """[B, U] -> [B, U, D]"""
        x = self.dropout(self.embedding(tokens))
        bias = causal_bias(tokens.shape[1], tokens.shape[1], tokens.device)
        for layer in self.predictor:
            x = layer(x, bias)
        return x

    def _join(self, x: Tensor, states: Tensor, bias: Tensor) -> Tensor:
        """[B, N, D] queries, [B, S, D] states, bias [B, 1, N or 1, S] -> [B, N, D]"""
        layer: Any  # a JoinerLayer
        for layer in self.joiner:
            x, _ = layer(x, layer.cross.project(states), bias)
        return self.norm(x)

    # ------------------------------------------------------------ step by step

    def memory(self, states: Tensor) -> tuple[Tensor, ...]:
        """States [B, S, D] -> the joiner's keys and values [B, L, H, S, K]"""
        return project(self.joiner, states)

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        """The predictor's empty keys and values [B, L, H, 0, K]"""
        config = self.config
        shape = (batch, len(self.predictor), config.heads, 0, config.size // config.heads)
        return self.output.weight.new_zeros(shape), self.output.weight.new_zeros(shape)

    def step(
        self, tokens: Tensor, memory: tuple[Tensor, ...], lengths: Tensor, cache: tuple[Tensor, ...]
    ) -> Step:
        past, new = cache[0].shape[3], tokens.shape[1]
        x = self.embedding(tokens, offset=past)
        self_bias = causal_bias(new, past + new, tokens.device)
        kept, attention = [], []
        layer: Any  # an EncoderLayer, then a JoinerLayer
        for i, layer in enumerate(self.predictor):
            x, pair = layer.going_on(x, self_bias, (cache[0][:, i], cache[1][:, i]))
            kept.append(pair)
        bias = padding_bias(lengths, memory[0].shape[3])
        for i, layer in enumerate(self.joiner):
            x, weights = layer(x, (memory[0][:, i], memory[1][:, i]), bias, explain=True)
            attention.append(weights)
        keys, values = zip(*kept, strict=True)
        return Step(
            logits=self.output(self.norm(x)),
            cache=(torch.stack(keys, dim=1), torch.stack(values, dim=1)),
            attention=torch.stack(attention, dim=1),
        )
