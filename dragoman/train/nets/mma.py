"""MMA: a Transformer decoder with monotonic multihead attention, over any encoder here.

Ma et al. 2020 (SimulMT to SimulST) and Zaidi et al. 2022. In training all heads of all layers
attend in expectation; at work the net says with every unit whether it may be written yet:

    step = net.step(tokens, memory, lengths, cache, final)
    if step.write: keep the unit and step.cache      else: READ, forget this step, hear more

A unit may be written once every head of every layer has stopped by itself, or the source is final.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.train.nets.base import Encoded, Net, Step, Vocabularies
from dragoman.train.nets.boundaries import fires
from dragoman.train.nets.decoder import TransformerDecoder, project
from dragoman.train.nets.layers import (
    DecoderLayer,
    LayerConfig,
    LayerSettings,
    causal_bias,
    for_products,
    several,
    valid,
)
from dragoman.train.nets.monotonic.attention import (
    Expected,
    MonotonicAttention,
    MonotonicConfig,
    Real,
)
from dragoman.train.nets.monotonic.decisions import COUNTED, Decisions, decide_at, decide_every
from dragoman.train.nets.monotonic.expectation import repeatable
from dragoman.train.settings import Whole


@dataclass(frozen=True)
class MmaConfig(LayerSettings, MonotonicConfig):
    """`encoder` names the net whose encoder listens; its settings say the size of all."""

    encoder: str = "transformer"
    encoder_settings: dict[str, object] = field(default_factory=dict)
    decoder_layers: Whole = 6
    decoder_heads: Whole = 4
    decoder_ffn: Whole = 2048
    tied_output: bool = False
    # Every `ratio` states, or where the encoder hears words end.
    decisions: Literal["fixed", "learned"] = "fixed"


@dataclass(frozen=True)
class Aligned:
    """Teacher-forced logits, and where the heads are expected to stop."""

    logits: Tensor  # [B, U, V]
    delays: Tensor  # [B, L H, U] expected states read before each unit, all heads of all layers
    energies: list[Tensor]  # of each layer [B, H, U, G], if asked for
    counts: Tensor  # [B] real decisions among G


@dataclass
class MonotonicStep(Step):
    """A step, and whether its units may be written with what has been heard."""

    write: Tensor  # [B, U] bool
    delays: Tensor  # [B, U] states the slowest head has read


class MonotonicDecoder(TransformerDecoder):
    """The Transformer decoder with `MonotonicAttention` to the source."""

    def __init__(
        self,
        vocabulary: int,
        layers: int,
        config: LayerConfig,
        monotonic: MonotonicConfig,
        tied: bool = False,
    ):
        self.monotonic = monotonic
        super().__init__(vocabulary, layers, config, tied)

    def make_layer(self, config: LayerConfig) -> nn.Module:
        return DecoderLayer(config, MonotonicAttention(config, self.monotonic))

    def align(
        self, tokens: Tensor, states: Tensor, decisions: Decisions, energies: bool = False
    ) -> Aligned:
        """Teacher forcing: tokens [B, U], states [B, S, D]"""
        x = self.dropout(self.embedding(tokens))
        self_bias = causal_bias(tokens.shape[1], tokens.shape[1], tokens.device)
        states = for_products(states)
        stop_keys = self._stop_keys(self.monotonic.group(states, decisions))
        readable, readings = self.monotonic.readable(states, decisions), []
        for layer, stop_key in zip(self.layers, stop_keys, strict=True):
            how = Expected(decisions, stop_key, energies)
            x, _, reading = layer(x, readable, self_bias, how, explain=True)
            readings.append(reading)
        return Aligned(
            logits=self.output(self.norm(x)),
            delays=torch.cat([reading.delays for reading in readings], dim=1),
            energies=[reading.energies for reading in readings] if energies else [],
            counts=decisions.counts,
        )

    def _stop_keys(self, grouped: Tensor) -> Sequence[Tensor | None]:
        """What heads of each layer look at to decide: [B, G, D], unless they wait k."""
        if self.monotonic.wait:
            return [None] * len(self.layers)
        layers: Iterable[Any] = self.layers
        maps = [layer.cross.stop_key for layer in layers]
        return several(grouped, maps).chunk(len(maps), dim=-1)

    def memory(self, states: Tensor) -> tuple[Tensor, ...]:
        """States [B, S, D] -> keys, values, stop keys of all layers, each [B, L, H, S, K]"""
        return project(self.layers, states)

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        """Empty self-attention caches [B, L, H, 0, K] and heads at the first decision [B, L, H]"""
        shape = (batch, len(self.layers), self.config.heads)
        pointers = torch.zeros(shape, dtype=torch.long, device=self.output.weight.device)
        return (*super().begin(batch), pointers)

    def read(
        self,
        tokens: Tensor,
        memory: tuple[Tensor, ...],
        cache: tuple[Tensor, ...],
        decisions: Decisions,
        final: Tensor,
    ) -> MonotonicStep:
        """New tokens [B, U] after those of the cache; final [B]: the source has ended."""
        past, new = cache[0].shape[3], tokens.shape[1]
        x = self.embedding(tokens, offset=past)
        self_bias = causal_bias(new, past + new, tokens.device)
        kept, readings = [], []
        for i, layer in enumerate(self.layers):
            source = tuple(kind[:, i] for kind in memory)
            how = Real(decisions, cache[2][:, i], past)
            previous = (cache[0][:, i], cache[1][:, i])
            x, pair, reading = layer(x, source, self_bias, how, previous, explain=True)
            kept.append(pair)
            readings.append(reading)
        keys, values = (torch.stack(kind, dim=1) for kind in zip(*kept, strict=True))
        wanted = torch.stack([reading.wanted for reading in readings], dim=1)
        delays = torch.stack([reading.delays for reading in readings], dim=1)
        return MonotonicStep(
            logits=self.output(self.norm(x)),
            cache=(keys, values, torch.stack([r.stops[..., -1] for r in readings], dim=1)),
            attention=torch.stack([reading.attention for reading in readings], dim=1),
            write=wanted.flatten(1, 2).all(1) | final.unsqueeze(1),
            delays=delays.flatten(1, 2).amax(1),
        )


class MonotonicNet(Net):
    """All that a net with a `MonotonicDecoder` does, but `encode`."""

    memory_time = 3
    keeps_past = True
    decides = "monotonic"
    decoder: MonotonicDecoder

    @property
    def host_decisions(self) -> str:
        return "" if repeatable() else "without its kernels, monotonic attention is computed twice"

    def decisions(self, encoded: Encoded) -> Decisions:
        """Where heads may stop, of all that was encoded."""
        return decide_every(self.decoder.monotonic.ratio, encoded.lengths, encoded.states.shape[1])

    def align(
        self,
        tokens: Tensor,
        encoded: Encoded,
        decisions: Decisions | None = None,
        energies: bool = False,
    ) -> Aligned:
        """tokens [B, U] (BOS first); by default heads may stop where they will at work."""
        if decisions is None:
            decisions = self.decisions(encoded)
        return self.decoder.align(tokens, encoded.states, decisions, energies)

    def decode(self, tokens: Tensor, encoded: Encoded, cross_bias: Tensor | None = None) -> Tensor:
        if cross_bias is not None:
            raise DragomanError(
                "A monotonic decoder decides for itself what it sees; for wait-k set its 'wait'."
            )
        return self.align(tokens, encoded).logits

    def memory(self, states: Tensor) -> tuple[Tensor, ...]:
        return self.decoder.memory(states)

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        return self.decoder.begin(batch)

    def step(
        self,
        tokens: Tensor,
        memory: tuple[Tensor, ...],
        lengths: Tensor,
        cache: tuple[Tensor, ...],
        final: Tensor | None = None,
    ) -> MonotonicStep:
        """As every net's step; final [B] says which sources have ended (all, if not given)."""
        if final is None:
            final = torch.ones_like(lengths, dtype=torch.bool)
        memory, decisions = self.heard(memory, lengths, final)
        return self.decoder.read(tokens, memory, cache, decisions, final)

    def heard(
        self, memory: tuple[Tensor, ...], lengths: Tensor, final: Tensor
    ) -> tuple[tuple[Tensor, ...], Decisions]:
        """What the decoder reads of the memory, and the decisions that can be taken by now."""
        ratio = self.decoder.monotonic.ratio
        decisions = decide_every(ratio, lengths, memory[0].shape[3])
        return memory, decisions.heard(final, lengths // ratio)


class Mma(MonotonicNet):
    """Any encoder, one monotonic decoder.

    With learned decisions (the flexible pre-decision of paper 000) heads stop only where the
    encoder's head fires: it is the last tensor of the memory, [B, 1, 1, S, 1].
    """

    config: MmaConfig
    source_rows = ("source.ctc",)

    def __init__(self, config: MmaConfig, vocabularies: Vocabularies):
        from dragoman.train.nets.registry import build  # the registry knows this net too

        super().__init__(config, vocabularies)
        where = "net_settings.encoder_settings"
        source = build(config.encoder, config.encoder_settings, vocabularies, where)
        self.source = cast(Any, source)  # it may hear in chunks, or find word ends
        self.source.decoder = None  # only its ears are used
        self.learned = config.decisions == "learned"
        if self.learned and getattr(self.source, "boundaries", None) is None:
            raise DragomanError(
                "Learned decisions need an encoder with a head that fires at word ends: "
                "set net_settings.encoder_settings.boundaries, for a net that has one."
            )
        self.decoder = MonotonicDecoder(
            vocabularies.target,
            config.decoder_layers,
            config.layer(self.source.config.size, config.decoder_heads, config.decoder_ffn),
            config,
            config.tied_output,
        )

    @property
    def host_decisions(self) -> str:
        return COUNTED if self.learned else super().host_decisions

    @property
    def feature_norm(self) -> nn.Module:
        return self.source.feature_norm

    def encode(self, features: Tensor, lengths: Tensor) -> Encoded:
        return self.source.encode(features, lengths)

    def decisions(self, encoded: Encoded) -> Decisions:
        if not self.learned:
            return super().decisions(encoded)
        logits = encoded.boundary_logits
        assert logits is not None  # the source has a head for them
        return decide_at(fires(logits), encoded.lengths).trimmed()

    def memory(self, states: Tensor) -> tuple[Tensor, ...]:
        read = super().memory(states)
        if not self.learned:
            return read
        return (*read, self.source.boundaries(states)[:, None, None, :, None])

    def heard(
        self, memory: tuple[Tensor, ...], lengths: Tensor, final: Tensor
    ) -> tuple[tuple[Tensor, ...], Decisions]:
        if not self.learned:
            return super().heard(memory, lengths, final)
        fired = fires(memory[-1][:, 0, 0, :, 0]) & valid(lengths, memory[0].shape[3])
        return memory[:-1], decide_at(fired, lengths).heard(final, fired.sum(1))

    def begin_stream(self, batch: int) -> tuple[Tensor, ...]:
        """For encoders that hear chunk by chunk."""
        return self.source.begin_stream(batch)

    def hear(
        self, features: Tensor, frames: Tensor, stream: tuple[Tensor, ...]
    ) -> tuple[Encoded, tuple[Tensor, ...]]:
        return self.source.hear(features, frames, stream)
