"""VGG-BLSTM with Bahdanau attention and an LSTM decoder (Nguyen et al. 2021).

Two VGG blocks quarter time and frequency; five bidirectional LSTM layers read the frames; the
decoder is two LSTM layers with additive attention between them: the first reads the target, its
state asks the source, the second reads the answer. (Where the answer is fed back into the first
layer, training must go unit by unit; here both layers run over the whole sentence at once.)

All that a decoder must remember is its LSTM states, which is what (k, s, N) decoding keeps while
the growing source is encoded anew.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from dragoman.train.nets.base import Encoded, FeatureNorm, Net, Step, Vocabularies
from dragoman.train.nets.ctc import CtcHead
from dragoman.train.nets.layers import linear, padding_bias, valid
from dragoman.train.nets.recurrent import Lstm
from dragoman.train.settings import BelowOne, Whole


@dataclass(frozen=True)
class VggBlstmConfig:
    """The paper's sizes; 80 mel bands, or 83 features with pitch."""

    features: Whole = 80
    channels: Whole = 64  # of the first VGG block; the second has twice as many
    size: Whole = 1024
    encoder_layers: Whole = 5
    attention: Whole = 512
    dropout: BelowOne = 0.1
    ctc: bool = False


class Vgg(nn.Module):
    """Conv, conv, pool, twice: [B, T, F] -> [B, ceil(T / 4), 2 C ceil(F / 4)]"""

    def __init__(self, channels: int):
        super().__init__()
        few, many = channels, 2 * channels
        sizes = [(1, few), (few, few), (few, many), (many, many)]
        convolutions = [nn.Conv2d(i, o, 3, padding=1) for i, o in sizes]
        for convolution in convolutions:
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            assert convolution.bias is not None
            nn.init.zeros_(convolution.bias)
        self.convolutions = nn.ModuleList(convolutions)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = features.unsqueeze(1)
        for i, convolution in enumerate(self.convolutions):
            x = x * valid(lengths, x.shape[2])[:, None, :, None]
            x = F.relu(convolution(x))
            if i % 2:
                x = x * valid(lengths, x.shape[2])[:, None, :, None]
                x = F.max_pool2d(x, 2, ceil_mode=True)
                lengths = (lengths + 1) // 2
        return x.transpose(1, 2).flatten(2), lengths


def reverse(x: Tensor, lengths: Tensor) -> Tensor:
    """Turns each item around within its length; padding stays behind: [B, T, D] -> same"""
    steps = torch.arange(x.shape[1], device=x.device)
    order = torch.where(valid(lengths, x.shape[1]), lengths.unsqueeze(1) - 1 - steps, steps)
    return x.gather(1, order.unsqueeze(-1).expand(-1, -1, x.shape[2]))


class Blstm(nn.Module):
    """One bidirectional layer. The way back starts at each item's own end, so nothing is packed."""

    def __init__(self, inputs: int, size: int):
        super().__init__()
        self.forwards = Lstm(inputs, size)
        self.backwards = Lstm(inputs, size)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, D] -> [B, T, 2 size]"""
        ahead, _ = self.forwards(x)
        back, _ = self.backwards(reverse(x, lengths))
        return torch.cat([ahead, reverse(back, lengths)], dim=-1)


class AdditiveAttention(nn.Module):
    """Bahdanau's: softmax over states of v · tanh(W q + U h + b)."""

    def __init__(self, query_size: int, state_size: int, size: int):
        super().__init__()
        self.query = linear(query_size, size)
        self.key = linear(state_size, size, bias=False)
        self.score = nn.Parameter(torch.randn(size) * size**-0.5)

    def forward(
        self, queries: Tensor, keys: Tensor, states: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        """queries [B, U, Q], keys [B, S, A], states [B, S, D] -> context [B, U, D], weights"""
        queries = self.query(queries)
        if self.training:  # the [B, U, S, A] inside is made again rather than kept
            scores = checkpoint(self.energies, queries, keys, use_reentrant=False)
        else:
            scores = self.energies(queries, keys)
        weights = torch.softmax(scores.float() + bias, dim=-1)
        return weights.to(states.dtype) @ states, weights

    def energies(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[B, U, A], [B, S, A] -> [B, U, S]"""
        return (torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1)) * self.score).sum(-1)


class LstmDecoder(nn.Module):
    """Target LSTM, attention, context LSTM, output."""

    def __init__(self, config: VggBlstmConfig, vocabulary: int):
        super().__init__()
        size = config.size
        self.embedding = nn.Embedding(vocabulary, size)
        self.target = Lstm(size, size)
        self.attention = AdditiveAttention(size, size, config.attention)
        self.context = Lstm(2 * size, size)
        self.dropout = nn.Dropout(config.dropout)
        self.output = linear(2 * size, vocabulary)

    def forward(
        self, tokens: Tensor, memory: tuple[Tensor, ...], bias: Tensor, cache: tuple[Tensor, ...]
    ) -> Step:
        """tokens [B, U], memory (keys, states), bias [B, 1 or U, S], cache 4 x [B, size]"""
        keys, states = memory
        z, first = self.target(self.dropout(self.embedding(tokens)), cache[:2])
        context, weights = self.attention(z, keys, states, bias)
        y, second = self.context(self.dropout(torch.cat([z, context], -1)), cache[2:])
        logits = self.output(self.dropout(torch.cat([y, context], -1)))
        return Step(logits, (*first, *second), weights.unsqueeze(1))


class VggBlstm(Net):
    """Speech [B, T, F] -> a quarter of the frames as states -> target units."""

    config: VggBlstmConfig
    host_decisions = "gradients compute its attention again"

    keeps_past = True

    def __init__(self, config: VggBlstmConfig, vocabularies: Vocabularies):
        super().__init__(config, vocabularies)
        self.feature_norm = FeatureNorm(config.features)
        self.vgg = Vgg(config.channels)
        picture = 2 * config.channels * ((config.features + 3) // 4)
        inputs = [picture] + [2 * config.size] * (config.encoder_layers - 1)
        self.layers = nn.ModuleList(Blstm(i, config.size) for i in inputs)
        self.dropout = nn.Dropout(config.dropout)
        self.project = linear(2 * config.size, config.size)
        self.ctc = CtcHead(config.size, vocabularies.source) if config.ctc else None
        self.decoder = LstmDecoder(config, vocabularies.target)

    def encode(self, features: Tensor, lengths: Tensor) -> Encoded:
        x, lengths = self.vgg(self.feature_norm(features, lengths), lengths)
        for layer in self.layers:
            x = layer(self.dropout(x), lengths)
        x = torch.tanh(self.project(x))
        if self.ctc is None:
            return Encoded(x, lengths)
        return Encoded(x, lengths, self.ctc(x), lengths)

    def decode(self, tokens: Tensor, encoded: Encoded, cross_bias: Tensor | None = None) -> Tensor:
        bias = encoded.bias if cross_bias is None else encoded.bias + cross_bias
        memory = self.memory(encoded.states)
        return self.decoder(tokens, memory, bias.squeeze(1), self.begin(tokens.shape[0])).logits

    def memory(self, states: Tensor) -> tuple[Tensor, ...]:
        return self.decoder.attention.key(states), states

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        zeros = self.project.weight.new_zeros(batch, self.config.size)
        return zeros, zeros, zeros, zeros

    def step(
        self, tokens: Tensor, memory: tuple[Tensor, ...], lengths: Tensor, cache: tuple[Tensor, ...]
    ) -> Step:
        bias = padding_bias(lengths, memory[1].shape[1])
        return self.decoder(tokens, memory, bias.squeeze(1), cache)
