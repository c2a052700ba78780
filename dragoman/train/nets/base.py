"""What every net is: one interface, so that one training loop and one exporter serve them all.

    encoded = net.encode(features, lengths)            # speech [B, T, F] or text [B, T]
    logits  = net.decode(tokens, encoded, cross_bias)  # teacher forcing: [B, U, V]

and, to decode unit by unit,

    memory = net.memory(encoded.states)                # projected once per encoding
    cache  = net.begin(batch)
    step   = net.step(tokens, memory, encoded.lengths, cache)   # one or more new tokens

`memory` and `cache` are flat tuples of tensors: an exporter can name them, a beam can reorder
them (the batch is always axis 0). Memory holds one entry per state along `Net.memory_time`, so an
incremental encoder appends to it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from dragoman.train.nets.layers import padding_bias, valid

# cuDNN plans its attention anew for every shape that it meets, for a second each.
torch.backends.cuda.enable_cudnn_sdp(False)

Decides = Literal["no", "monotonic", "transducer"]


@dataclass(frozen=True)
class Vocabularies:
    """How many units each side has, special tokens included, blank excluded."""

    target: int
    source: int


@dataclass
class Encoded:
    """What the encoder made of a batch."""

    states: Tensor  # [B, S, D]
    lengths: Tensor  # [B] states of each item
    ctc_logits: Tensor | None = None  # [B, C, source + 1], blank last
    ctc_lengths: Tensor | None = None  # [B]; differs from lengths under CTC compression
    boundary_logits: Tensor | None = None  # [B, S] does a word end at this state

    @property
    def bias(self) -> Tensor:
        """Hides padded states from attention: [B, 1, 1, S]"""
        return padding_bias(self.lengths, self.states.shape[1])

    @property
    def valid(self) -> Tensor:
        """[B, S], True where a state is no padding"""
        return valid(self.lengths, self.states.shape[1])


@dataclass
class Step:
    """What one call of `step` returns for U new tokens."""

    logits: Tensor  # [B, U, V]
    cache: tuple[Tensor, ...]
    attention: Tensor  # [B, layers, U, S] to the source, averaged over heads


class HearsChunks(Protocol):
    """What a net with an incremental encoder does besides."""

    def begin_stream(self, batch: int) -> tuple[Tensor, ...]:
        """What is kept from chunk to chunk, before anything was heard."""

    def hear(
        self, features: Tensor, frames: Tensor, stream: tuple[Tensor, ...]
    ) -> tuple[Encoded, tuple[Tensor, ...]]:
        """One chunk, of which so many `frames` [B] are real; its states, and what is kept."""


class Net(nn.Module, ABC):
    """An encoder and a decoder. Subclasses say how; the vocabularies say how wide."""

    memory_time: int = 1  # the axis of `memory` tensors that runs over states
    hears_sound: bool = False  # its features are the sound itself: [B, samples]
    keeps_past: bool = False  # the cache stays good when more source is heard
    # Parts with a row for each unit: they mean nothing under another vocabulary.
    source_rows: tuple[str, ...] = ("ctc",)
    target_rows: tuple[str, ...] = ("decoder.embedding", "decoder.output")
    decides: Decides = "no"  # its own reading and writing: "monotonic" (MMA) or "transducer" (CAAT)

    @property
    def state_ms(self) -> float:
        """How long a state of speech lasts: four frames of 10 ms, as most nets have it."""
        return 40.0

    @property
    def host_decisions(self) -> str:
        """What a step draws or counts on the host, in words."""
        return ""

    def __init__(self, config: Any, vocabularies: Vocabularies):
        """`config` is a dataclass, of each kind of net its own."""
        super().__init__()
        self.config, self.vocabularies = config, vocabularies

    @property
    def blank(self) -> int:
        """The CTC blank's index: one past the source vocabulary."""
        return self.vocabularies.source

    @abstractmethod
    def encode(self, features: Tensor, lengths: Tensor) -> Encoded:
        """Speech [B, T, F] or text [B, T], with the lengths [B] of its items."""

    @abstractmethod
    def decode(self, tokens: Tensor, encoded: Encoded, cross_bias: Tensor | None = None) -> Tensor:
        """tokens [B, U] (BOS first) -> logits of the units that follow them [B, U, V].

        `cross_bias` (see `layers.seen_bias`) limits what each unit sees of the source; padded
        states are hidden in any case.
        """

    @abstractmethod
    def memory(self, states: Tensor) -> tuple[Tensor, ...]:
        """States [B, S, D] -> what a step reads of them."""

    @abstractmethod
    def begin(self, batch: int) -> tuple[Tensor, ...]:
        """The cache before anything was said."""

    @abstractmethod
    def step(
        self, tokens: Tensor, memory: tuple[Tensor, ...], lengths: Tensor, cache: tuple[Tensor, ...]
    ) -> Step:
        """tokens [B, U] that follow what the cache holds; lengths [B] of the memory."""


class Listening(Net):
    """A net with parts that do nothing but listen: what they hear can be kept."""

    @property
    @abstractmethod
    def listens(self) -> tuple[str, ...]:
        """The names of those parts."""

    @abstractmethod
    def states_in(self, samples: Tensor) -> Tensor:
        """How many states so many samples make."""

    @abstractmethod
    def rows_in(self, samples: Tensor) -> Tensor:
        """How many rows the parts that listen make of them: more than there are states where a
        state is seen in several ways."""

    @abstractmethod
    def listen(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Those rows `[B, R, D]`, and how many states there are."""

    @abstractmethod
    def listened(self, states: Tensor, lengths: Tensor) -> Encoded:
        """What `encode` makes of those rows."""


class FeatureNorm(nn.Module):
    """(features - mean) / deviation, with the training corpus' statistics kept in the net.

    The net is fed plain log-mel features; what it was trained with travels inside its weights.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, features: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("deviation", torch.ones(features))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, F] -> [B, T, F], zero past each length"""
        x = (features - self.mean) / self.deviation
        return x * valid(lengths, x.shape[1]).unsqueeze(-1)
