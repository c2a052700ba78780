"""Moonshine's encoder, grafted onto a text model: neither has to learn what the other knows.

The encoder has heard 200,000 hours of real speech and stays as it is; layers and decoder of a text
model have read far more than any corpus of spoken translations holds (`init_more: weights/mt-en`).
Between them, four states of 24 ms become one that is as wide as the text model's. A CTC head on an
inner layer, as in Xu et al. 2021 (stacked acoustic and textual encoding), has the layers below it
hear units and those above it read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.train.nets.base import Encoded, Listening, Vocabularies
from dragoman.train.nets.blocks import Blocks, Context
from dragoman.train.nets.ctc import CtcHead
from dragoman.train.nets.decoder import TransformerDecoded, TransformerDecoder
from dragoman.train.nets.layers import (
    EncoderLayer,
    LayerSettings,
    padding_bias,
    sinusoids,
    valid,
)
from dragoman.train.nets.moonshine import (
    FOREVER,
    STATE_MS,
    Encoder,
    MoonshineConfig,
    hide,
    rows_in,
    states_in,
)
from dragoman.train.settings import BelowOne, Count, Whole


@dataclass(frozen=True)
class GraftedConfig(LayerSettings):
    """The defaults are Moonshine base before layers of the text model that is shipped."""

    size: Whole = 512
    encoder_layers: Whole = 6  # behind Moonshine's
    decoder_layers: Whole = 3
    heads: Whole = 8
    ffn: Whole = 2048
    ctc_layer: Count = 2  # of those; 0: no CTC
    joined: Whole = 4  # states of Moonshine's that become one
    hidden: BelowOne = 0.0  # share of Moonshine's states that training hides
    chunk: Count = 0  # of Moonshine's states that are made at a time, for good; 0: all of them
    ahead: Count = 0  # states behind those that are looked at
    ears_size: Whole = 416  # and so on: Moonshine's
    ears_layers: Whole = 8
    ears_heads: Whole = 8
    ears_ffn: Whole = 1664
    ears_turning: Whole = 32

    def __post_init__(self) -> None:
        _ = self.ears  # which has sentences of its own for what cannot be
        if self.ctc_layer > self.encoder_layers:
            raise DragomanError(
                f"CTC cannot listen to layer {self.ctc_layer} of {self.encoder_layers}; "
                "set ctc_layer to one that there is, or to 0 for no CTC."
            )
        if self.chunk % self.joined or self.ahead % self.joined:
            raise DragomanError(
                f"Of {self.chunk} states and {self.ahead} ahead, {self.joined} at a time cannot be "
                "joined: set chunk and ahead in net_settings to multiples of joined."
            )

    @property
    def ears(self) -> MoonshineConfig:
        return MoonshineConfig(
            size=self.ears_size,
            heads=self.ears_heads,
            encoder_layers=self.ears_layers,
            ffn=self.ears_ffn,
            turning=self.ears_turning,
            hidden=self.hidden,
            chunk=self.chunk,
            ahead=self.ahead,
        )

    @property
    def context(self) -> Context:
        """What a chunk of joined states sees: all that was before it."""
        return Context(self.chunk // self.joined, self.ahead // self.joined, left=FOREVER)

    @property
    def state_ms(self) -> float:
        return STATE_MS * self.joined


class Graft(nn.Module):
    """Several states of the encoder become one of the text model's: [..., n * D] -> [..., size]"""

    def __init__(self, config: GraftedConfig):
        super().__init__()
        inner = 2 * config.size
        self.wide = nn.Linear(config.joined * config.ears_size, inner)
        self.narrow = nn.Linear(inner, config.size)
        # As large as embeddings are, which the layers behind it are used to.
        self.norm = nn.LayerNorm(config.size)

    def forward(self, states: Tensor) -> Tensor:
        return self.norm(self.narrow(nn.functional.gelu(self.wide(states))))


class Grafted(TransformerDecoded, Listening):
    """Sound [B, samples] -> states of 96 ms -> target units."""

    config: GraftedConfig
    hears_sound = True

    def __init__(self, config: GraftedConfig, vocabularies: Vocabularies):
        super().__init__(config, vocabularies)
        layer = config.layer(config.size, config.heads, config.ffn)
        self.encoder = Encoder(config.ears)
        self.graft = Graft(config)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(EncoderLayer(layer) for _ in range(config.encoder_layers))
        self.norm = nn.LayerNorm(config.size) if config.pre_norm else nn.Identity()
        self.ctc = CtcHead(config.size, vocabularies.source) if config.ctc_layer else None
        self.decoder = TransformerDecoder(
            vocabularies.target, config.decoder_layers, layer, tied=True
        )

    @property
    def state_ms(self) -> float:
        return self.config.state_ms

    @property
    def listens(self) -> tuple[str, ...]:
        return ("encoder",)

    def states_in(self, samples: Tensor) -> Tensor:
        return states_in(samples)

    def rows_in(self, samples: Tensor) -> Tensor:
        return rows_in(self.config.ears, samples)

    def listen(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return self.encoder.heard(features, lengths)

    def encode(self, features: Tensor, lengths: Tensor) -> Encoded:
        return self.listened(*self.listen(features, lengths))

    def listened(self, states: Tensor, lengths: Tensor) -> Encoded:
        """`states` are rows of the encoder, of which `lengths` tell what is real."""
        config = self.config
        states = self.encoder.norm(states)
        if self.training and config.hidden:
            states = hide(states, config.hidden)
        inside = self._inside(lengths, states.shape[1])
        x = self.graft(self.groups(states * inside))
        lengths = torch.div(lengths + config.joined - 1, config.joined, rounding_mode="floor")
        if not config.chunk:
            places = torch.arange(x.shape[1], device=x.device)
            return self._read(x, places, padding_bias(lengths, x.shape[1]), lengths, None)
        context = config.context
        count = x.shape[1] // (context.chunk + context.right)
        blocks = Blocks(context, lengths, count * context.chunk)
        return self._read(x, blocks.places, blocks.bias, lengths, blocks)

    def groups(self, states: Tensor) -> Tensor:
        """States that become one, side by side: [B, R, D] -> [B, R / n, n * D]"""
        return states.unflatten(1, (-1, self.config.joined)).flatten(2)

    def _inside(self, lengths: Tensor, rows: int) -> Tensor:
        """Which rows are no padding: [B, R, 1]"""
        config = self.config
        if not config.chunk:
            return valid(lengths, rows).unsqueeze(-1)
        return Blocks(
            config.ears.context, lengths, rows // (config.chunk + config.ahead) * config.chunk
        ).mask

    def _read(
        self, x: Tensor, places: Tensor, bias: Tensor, lengths: Tensor, blocks: Blocks | None
    ) -> Encoded:
        x = self.dropout(x + sinusoids(places, x.shape[-1]))
        x, heard, _ = self._through(x, bias.to(x.dtype))
        if blocks is not None:
            x, heard = blocks.chunks(x), blocks.chunks(heard)
        return self._encoded(x, heard, lengths)

    def read_on(
        self, groups: Tensor, places: Tensor, bias: Tensor, past: tuple[Tensor, Tensor]
    ) -> tuple[Encoded, tuple[Tensor, Tensor]]:
        """Go on reading: groups [B, n, joined * D] at places [B, n], with `bias` [B, 1, 1, P + n]
        over the P before them, whose keys and values [B, L, H, P, K] are in `past`, and themselves.
        The new keys and values come with the states.
        """
        x = self.graft(groups)
        x = x + sinusoids(places, x.shape[-1])
        layers = zip(past[0].unbind(1), past[1].unbind(1), strict=True)
        x, heard, kept = self._through(x, bias, list(layers))
        new = ([one[:, :, -groups.shape[1] :] for one in kind] for kind in zip(*kept, strict=True))
        keys, values = (torch.stack(kind, dim=1) for kind in new)
        return self._encoded(x, heard, torch.full((len(x),), x.shape[1])), (keys, values)

    def _through(
        self, x: Tensor, bias: Tensor, past: Sequence[tuple[Tensor, Tensor]] = ()
    ) -> tuple[Tensor, Tensor, list[tuple[Tensor, Tensor]]]:
        """What the layers make of x, what the CTC head listens to, and all keys and values."""
        heard, kept = x, []
        layer: Any  # an EncoderLayer
        for depth, layer in enumerate(self.layers, start=1):
            x, pair = layer.going_on(x, bias, past[depth - 1] if past else None)
            kept.append(pair)
            heard = x if depth == self.config.ctc_layer else heard
        return self.norm(x), heard, kept

    def _encoded(self, states: Tensor, heard: Tensor, lengths: Tensor) -> Encoded:
        if self.ctc is None:
            return Encoded(states, lengths)
        return Encoded(states, lengths, self.ctc(heard), lengths)
