"""Moonshine's shape: a net that hears the sound itself and whose positions turn.

Its encoder has heard 200,000 hours of real speech (Jeffries et al. 2024), so a net that starts from
the published weights (`init: store:moonshine-base`) needs to learn translation only. What is
trained here runs with the code that runs Moonshine: `dragoman.models.moonshine`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.train.nets.base import Encoded, Listening, Step, Vocabularies
from dragoman.train.nets.blocks import Blocks, Context
from dragoman.train.nets.ctc import CtcHead
from dragoman.train.nets.layers import EVEN, attend, causal_bias, join_heads, padding_bias, valid
from dragoman.train.settings import BelowOne, Count, Whole

# Three convolutions, (kernel, stride): 384 samples become a state.
STEM = ((127, 64), (7, 3), (3, 2))
STATE_MS = 24.0
SPAN = 20  # states that are hidden together, about half a second
FOREVER = 1 << 30  # states


@dataclass(frozen=True)
class MoonshineConfig:
    """The defaults are Moonshine base."""

    size: Whole = 416
    heads: Whole = 8
    encoder_layers: Whole = 8
    decoder_layers: Whole = 8
    ffn: Whole = 1664
    turning: Whole = 32  # numbers of each head that positions turn, the first ones
    dropout: BelowOne = 0.1
    ctc: bool = False  # a head that hears source units, to count words by
    learns: Count = 0  # the encoder's last layers, which learn where those before stay as they are
    hidden: BelowOne = 0.0  # share of the states that training hides, as masks hide features
    chunk: Count = 0  # states that the encoder makes at a time, for good; 0: all of them
    ahead: Count = 0  # states behind those that it looks at

    def __post_init__(self) -> None:
        if self.learns > self.encoder_layers:
            raise DragomanError(
                f"{self.learns} of {self.encoder_layers} layers of the encoder cannot learn: "
                "set net_settings.learns to another number."
            )
        if self.ahead and not self.chunk:
            raise DragomanError(
                f"The encoder cannot hear {self.chunk} states at a time and {self.ahead} ahead: "
                "set net_settings.chunk to 1 or more, or both to 0."
            )
        if (self.chunk + self.ahead) % EVEN:
            raise DragomanError(
                f"chunk and ahead in net_settings are {self.chunk + self.ahead} states together; "
                f"attention wants a multiple of {EVEN}."
            )

    @property
    def context(self) -> Context:
        """What a chunk sees: all that was before it."""
        return Context(self.chunk, self.ahead, left=FOREVER)


def states_in(samples: Tensor) -> Tensor:
    """How many states so many samples make."""
    for kernel, stride in STEM:
        samples = torch.div(samples - kernel, stride, rounding_mode="floor") + 1
    return samples.clamp(min=1)


def rows_in(config: MoonshineConfig, samples: Tensor) -> Tensor:
    """How many rows an encoder makes of so many samples: with each chunk, those ahead of it."""
    chunk, ahead = config.chunk, config.ahead
    states = states_in(samples)
    if not chunk:
        return states
    return torch.div(states + chunk - 1, chunk, rounding_mode="floor") * (chunk + ahead)


class Norm(nn.Module):
    """Layer normalisation without a bias."""

    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight)


class Stem(nn.Module):
    """From sound to frames of 24 ms."""

    def __init__(self, size: int):
        super().__init__()
        (first, pace), (second, second_pace), (third, third_pace) = STEM
        self.conv1 = nn.Conv1d(1, size, first, pace, bias=False)
        self.scale, self.shift = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))
        self.conv2 = nn.Conv1d(size, 2 * size, second, second_pace)
        self.conv3 = nn.Conv1d(2 * size, size, third, third_pace)

    def forward(self, sound: Tensor, samples: Tensor) -> Tensor:
        """Sound [B, samples] -> [B, S, D], in single precision: in sixteen bits, what is quiet
        drowns."""
        with torch.autocast(sound.device.type, enabled=False):
            return self.heard(sound, samples)

    def heard(self, sound: Tensor, samples: Tensor) -> Tensor:
        x = torch.tanh(self.conv1(sound.unsqueeze(1)))
        kernel, pace = STEM[0]
        frames = torch.div(samples - kernel, pace, rounding_mode="floor") + 1
        inside = valid(frames, x.shape[2]).unsqueeze(1)
        # One mean and one variance for all that is heard of an item; padding does not count.
        count = inside.sum((1, 2), keepdim=True).clamp(min=1) * x.shape[1]
        mean = (x * inside).sum((1, 2), keepdim=True) / count
        variance = ((x - mean).square() * inside).sum((1, 2), keepdim=True) / count
        x = (x - mean) * torch.rsqrt(variance + 1e-5)
        x = x * self.scale[:, None] + self.shift[:, None]
        x = F.gelu(self.conv2(x))
        return F.gelu(self.conv3(x)).transpose(1, 2)


class EncoderLayer(nn.Module):
    def __init__(self, config: MoonshineConfig):
        super().__init__()
        self.config = config
        self.attention_norm, self.ffn_norm = Norm(config.size), Norm(config.size)
        self.qkv = nn.Linear(config.size, 3 * config.size, bias=False)
        self.out = nn.Linear(config.size, config.size, bias=False)
        self.wide = nn.Linear(config.size, config.ffn)
        self.narrow = nn.Linear(config.ffn, config.size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, turn: Tensor, bias: Tensor) -> Tensor:
        query, key, value = in_heads(self.qkv(self.attention_norm(x)), 3, self.config.heads)
        looked = seen(turned(query, turn), turned(key, turn), value, bias)
        x = x + self.dropout(self.out(looked))
        return x + self.dropout(self.narrow(F.gelu(self.wide(self.ffn_norm(x)))))


class DecoderLayer(nn.Module):
    def __init__(self, config: MoonshineConfig):
        super().__init__()
        self.config = config
        size = config.size
        self.attention_norm, self.cross_norm, self.ffn_norm = Norm(size), Norm(size), Norm(size)
        self.qkv = nn.Linear(size, 3 * size, bias=False)
        self.out = nn.Linear(size, size, bias=False)
        self.cross_query = nn.Linear(size, size, bias=False)
        self.cross_memory = nn.Linear(size, 2 * size, bias=False)
        self.cross_out = nn.Linear(size, size, bias=False)
        self.wide = nn.Linear(size, 2 * config.ffn)  # what goes on, and the gates
        self.narrow = nn.Linear(config.ffn, size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: tuple[Tensor, Tensor],
        turn: Tensor,
        biases: tuple[Tensor, Tensor],
        past: tuple[Tensor, Tensor] | None = None,
        explain: bool = False,
    ) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor | None]:
        """The next layer's input, the keys and values of all units so far, and, to `explain`, where
        the units look, [B, U, S], averaged over heads."""
        query, key, value = in_heads(self.qkv(self.attention_norm(x)), 3, self.config.heads)
        query, key = turned(query, turn), turned(key, turn)
        if past is not None:
            key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        x = x + self.dropout(self.out(seen(query, key, value, biases[0])))
        (looking,) = in_heads(self.cross_query(self.cross_norm(x)), 1, self.config.heads)
        look = looks(looking, memory[0], biases[1]).mean(1) if explain else None
        x = x + self.dropout(self.cross_out(seen(looking, *memory, biases[1])))
        inner, gate = self.wide(self.ffn_norm(x)).chunk(2, -1)
        return x + self.dropout(self.narrow(F.silu(gate) * inner)), (key, value), look

    def project(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values of states: [B, H, S, K] each."""
        keys, values = in_heads(self.cross_memory(states), 2, self.config.heads)
        return keys, values


class Encoder(nn.Module):
    angles: Tensor

    def __init__(self, config: MoonshineConfig):
        super().__init__()
        self.config = config
        self.stem = Stem(config.size)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.norm = Norm(config.size)
        self.register_buffer("angles", angles(config.turning))

    @property
    def still(self) -> int:
        """The layers that stay as they are, if anything does: the first ones."""
        return self.config.encoder_layers - self.config.learns

    def heard(self, sound: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
        """What the layers that stay as they are make of sound, and how many states it has. Where
        they come in chunks, each chunk stands there with those ahead of it: the next layer needs
        them as this chunk sees them."""
        x, lengths = self.stem(sound, samples), states_in(samples)
        blocks = self.blocks(lengths, x.shape[1])
        x = F.pad(x, (0, 0, 0, -x.shape[1] % EVEN)) if blocks is None else blocks.lay(x)
        return self.through(self.layers[: self.still], x, lengths, blocks), lengths

    def understood(self, x: Tensor, lengths: Tensor) -> Tensor:
        """What the others make of that, a row for each state."""
        chunk, ahead = self.config.chunk, self.config.ahead
        blocks = self.blocks(lengths, x.shape[1] // (chunk + ahead) * chunk) if chunk else None
        x = self.norm(self.through(self.layers[self.still :], x, lengths, blocks))
        return x if blocks is None else blocks.chunks(x)

    def blocks(self, lengths: Tensor, states: int) -> Blocks | None:
        """How states are laid out in chunks, where they come in chunks."""
        return Blocks(self.config.context, lengths, states) if self.config.chunk else None

    def through(
        self, layers: Iterable[nn.Module], x: Tensor, lengths: Tensor, blocks: Blocks | None
    ) -> Tensor:
        if blocks is None:
            places = torch.arange(x.shape[1], device=x.device)
            bias = padding_bias(lengths, x.shape[1])
        else:
            places, bias = blocks.places, blocks.bias
        turn, bias = turns(self.angles, places), bias.to(x.dtype)
        for layer in layers:
            x = layer(x, turn, bias)
        return x


class Decoder(nn.Module):
    angles: Tensor

    def __init__(self, config: MoonshineConfig, vocabulary: int):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocabulary, config.size)
        # About as large as Moonshine's own, which layers that start from it are used to.
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = Norm(config.size)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("angles", angles(config.turning))

    def forward(self, tokens: Tensor, states: Tensor, cross_bias: Tensor) -> Tensor:
        x = self.dropout(self.embedding(tokens))
        size = tokens.shape[1]
        biases = (causal_bias(size, size, tokens.device).to(states.dtype), cross_bias)
        turn = turns(self.angles, torch.arange(size, device=tokens.device))
        layer: Any  # a DecoderLayer
        for layer in self.layers:
            x, _, _ = layer(x, layer.project(states), turn, biases)
        return self.scores(x)

    def scores(self, x: Tensor) -> Tensor:
        return F.linear(self.norm(x), self.embedding.weight)

    def step(
        self, tokens: Tensor, memory: tuple[Tensor, ...], lengths: Tensor, cache: tuple[Tensor, ...]
    ) -> Step:
        past, new = cache[0].shape[3], tokens.shape[1]
        places = torch.arange(past, past + new, device=tokens.device)
        x, turn = self.embedding(tokens), turns(self.angles, places)
        self_bias = causal_bias(new, past + new, tokens.device)
        biases = (self_bias, padding_bias(lengths, memory[0].shape[3]))
        kept, attention = [], []
        for i, layer in enumerate(self.layers):
            here, before = (memory[0][:, i], memory[1][:, i]), (cache[0][:, i], cache[1][:, i])
            x, pair, look = layer(x, here, turn, biases, before, explain=True)
            kept.append(pair)
            attention.append(look)
        keys, values = (torch.stack(kind, 1) for kind in zip(*kept, strict=True))
        return Step(self.scores(x), (keys, values), torch.stack(attention, 1))


class Moonshine(Listening):
    """Sound [B, samples] -> states of 24 ms -> target units."""

    config: MoonshineConfig
    hears_sound = True
    memory_time = 3
    target_rows = ("decoder.embedding",)

    def __init__(self, config: MoonshineConfig, vocabularies: Vocabularies):
        super().__init__(config, vocabularies)
        self.encoder, self.decoder = Encoder(config), Decoder(config, vocabularies.target)
        self.ctc = CtcHead(config.size, vocabularies.source) if config.ctc else None

    @property
    def state_ms(self) -> float:
        return STATE_MS

    @property
    def listens(self) -> tuple[str, ...]:
        layers = (f"encoder.layers.{number}" for number in range(self.encoder.still))
        return ("encoder.stem", *layers)

    def states_in(self, samples: Tensor) -> Tensor:
        return states_in(samples)

    def rows_in(self, samples: Tensor) -> Tensor:
        return rows_in(self.config, samples)

    def listen(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return self.encoder.heard(features, lengths)

    def encode(self, features: Tensor, lengths: Tensor) -> Encoded:
        return self.listened(*self.listen(features, lengths))

    def listened(self, states: Tensor, lengths: Tensor) -> Encoded:
        if self.training and self.config.hidden:
            states = hide(states, self.config.hidden)
        states = self.encoder.understood(states, lengths)
        if self.ctc is None:
            return Encoded(states, lengths)
        return Encoded(states, lengths, self.ctc(states), lengths)

    def decode(self, tokens: Tensor, encoded: Encoded, cross_bias: Tensor | None = None) -> Tensor:
        bias = encoded.bias if cross_bias is None else encoded.bias + cross_bias
        return self.decoder(tokens, encoded.states, bias.to(encoded.states.dtype))

    def memory(self, states: Tensor) -> tuple[Tensor, ...]:
        layers: Iterable[Any] = self.decoder.layers
        projected = [layer.project(states) for layer in layers]
        return tuple(torch.stack(kind, 1) for kind in zip(*projected, strict=True))

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        config = self.decoder.config
        shape = (batch, config.decoder_layers, config.heads, 0, config.size // config.heads)
        empty = self.decoder.embedding.weight.new_zeros(shape)
        return empty, empty

    def step(
        self, tokens: Tensor, memory: tuple[Tensor, ...], lengths: Tensor, cache: tuple[Tensor, ...]
    ) -> Step:
        return self.decoder.step(tokens, memory, lengths, cache)


def hide(states: Tensor, share: float) -> Tensor:
    """States `[B, S, D]` of which about a share is nothing, in spans that may overlap: words must
    then be told from what stands around them, and no sentence is ever heard twice."""
    # A state is seen if none of the SPAN places up to its own begins a span.
    begins = 1 - (1 - share) ** (1 / SPAN)
    batch, size, _ = states.shape
    begun = torch.rand(batch, 1, size + SPAN - 1, device=states.device) < begins
    gone = F.max_pool1d(begun.float(), SPAN, stride=1)
    return states * (1 - gone).to(states.dtype).transpose(1, 2)


def angles(turning: int) -> Tensor:
    """By how much each pair of numbers turns from one position to the next."""
    return 10000.0 ** -(torch.arange(0, turning, 2) / turning)


def turns(by: Tensor, positions: Tensor) -> Tensor:
    """Cosines and sines of positions: [2, count, pairs]"""
    turned_by = positions[:, None].float() * by.float()
    return torch.stack([turned_by.cos(), turned_by.sin()])


def turned(x: Tensor, turn: Tensor) -> Tensor:
    """Heads [B, H, n, K] whose first numbers are turned, in pairs of neighbours."""
    cosine, sine = turn.to(x.dtype)
    pairs = cosine.shape[-1]
    even, odd = x[..., : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
    both = torch.stack([even * cosine - odd * sine, odd * cosine + even * sine], -1)
    return torch.cat([both.flatten(-2), x[..., 2 * pairs :]], -1)


def in_heads(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """[B, n, parts * D] -> parts of [B, H, n, K]"""
    batch, size, width = x.shape
    split = x.view(batch, size, parts, heads, width // parts // heads)
    return split.permute(2, 0, 3, 1, 4).unbind(0)


def looks(query: Tensor, key: Tensor, bias: Tensor) -> Tensor:
    """How heads spread their attention: [B, H, n, S]"""
    scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5
    return (scores + bias.to(scores.dtype)).softmax(-1)


def seen(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    """What the heads see, joined: [B, n, D]"""
    return join_heads(attend(query, key, value, bias))
