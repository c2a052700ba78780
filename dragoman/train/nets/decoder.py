"""The Transformer decoder that most nets share, teacher-forced or step by step with caches."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.train.nets.base import Encoded, Net, Step
from dragoman.train.nets.layers import (
    DecoderLayer,
    Embedding,
    LayerConfig,
    causal_bias,
    for_products,
    linear,
    padding_bias,
)


class TransformerDecoder(nn.Module):
    """Embeddings, layers, a final norm (pre-norm only) and the map to the vocabulary."""

    def __init__(self, vocabulary: int, layers: int, config: LayerConfig, tied: bool = False):
        super().__init__()
        self.config = config
        self.embedding = Embedding(vocabulary, config.size)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(self.make_layer(config) for _ in range(layers))
        self.norm = nn.LayerNorm(config.size) if config.pre_norm else nn.Identity()
        self.output = linear(config.size, vocabulary, bias=False)
        nn.init.normal_(self.output.weight, std=config.size**-0.5)
        if tied:
            self.output.weight = self.embedding.weight

    def make_layer(self, config: LayerConfig) -> nn.Module:
        """One layer; a decoder with another attention overrides this."""
        return DecoderLayer(config)

    def forward(self, tokens: Tensor, states: Tensor, cross_bias: Tensor | None) -> Tensor:
        """Teacher forcing: tokens [B, U], states [B, S, D] -> logits [B, U, V]"""
        x = self.dropout(self.embedding(tokens))
        self_bias = causal_bias(tokens.shape[1], tokens.shape[1], tokens.device)
        states = for_products(states)
        layer: Any  # of `make_layer`
        for layer in self.layers:
            x, _, _ = layer(x, layer.cross.project(states), self_bias, cross_bias)
        return self.output(self.norm(x))

    def memory(self, states: Tensor) -> tuple[Tensor, ...]:
        """States [B, S, D] -> the keys and values of all layers [B, L, H, S, K]"""
        return project(self.layers, states)

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        """Empty caches of self-attention keys and values: [B, L, H, 0, K]"""
        config = self.config
        shape = (batch, len(self.layers), config.heads, 0, config.size // config.heads)
        return self.output.weight.new_zeros(shape), self.output.weight.new_zeros(shape)

    def step(
        self, tokens: Tensor, memory: tuple[Tensor, ...], lengths: Tensor, cache: tuple[Tensor, ...]
    ) -> Step:
        """U new tokens [B, U] after the P that the cache holds."""
        past, new = cache[0].shape[3], tokens.shape[1]
        x = self.embedding(tokens, offset=past)
        self_bias = causal_bias(new, past + new, tokens.device)
        cross_bias = padding_bias(lengths, memory[0].shape[3])
        kept, attention = [], []
        for i, layer in enumerate(self.layers):
            source, previous = (memory[0][:, i], memory[1][:, i]), (cache[0][:, i], cache[1][:, i])
            x, pair, weights = layer(x, source, self_bias, cross_bias, previous, explain=True)
            kept.append(pair)
            attention.append(weights)
        keys, values = zip(*kept, strict=True)
        return Step(
            logits=self.output(self.norm(x)),
            cache=(torch.stack(keys, dim=1), torch.stack(values, dim=1)),
            attention=torch.stack(attention, dim=1),
        )


def project(layers: Iterable[Any], states: Tensor) -> tuple[Tensor, ...]:
    """What the cross-attention of layers reads of states [B, S, D], each kind [B, L, H, S, K]"""
    projected = [layer.cross.project(states) for layer in layers]
    return tuple(torch.stack(kind, dim=1) for kind in zip(*projected, strict=True))


class TransformerDecoded(Net):
    """A net whose decoder is a `TransformerDecoder`: all but `encode` is settled here."""

    memory_time = 3
    decoder: TransformerDecoder

    def decode(self, tokens: Tensor, encoded: Encoded, cross_bias: Tensor | None = None) -> Tensor:
        bias = encoded.bias if cross_bias is None else encoded.bias + cross_bias
        return self.decoder(tokens, encoded.states, bias)

    def memory(self, states: Tensor) -> tuple[Tensor, ...]:
        return self.decoder.memory(states)

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        return self.decoder.begin(batch)

    def step(
        self, tokens: Tensor, memory: tuple[Tensor, ...], lengths: Tensor, cache: tuple[Tensor, ...]
    ) -> Step:
        return self.decoder.step(tokens, memory, lengths, cache)
