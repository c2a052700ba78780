"""Joint speech-text MMA: Zaidi et al. 2022 (Decision Attentive Regularization), section 3.3.

One monotonic decoder reads from two encoders: speech (12 layers) and text (6). The top six speech
layers are the text encoder's layers, so both end in one space, where CAR can compare them; the
decoder's energies for both can be compared by DAR, and the text side can teach the speech side.

    speech = net.encode(features, lengths)        text = net.encode_text(units, unit_lengths)
    st     = net.align(tokens, speech)            mt   = net.align_text(tokens, text)

At work only speech is heard; the net is then an MMA like any other.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.train.nets.base import Encoded, FeatureNorm, Vocabularies
from dragoman.train.nets.layers import (
    Embedding,
    EncoderLayer,
    LayerSettings,
    scaled,
    sinusoids,
)
from dragoman.train.nets.mma import Aligned, MonotonicDecoder, MonotonicNet
from dragoman.train.nets.monotonic.attention import MonotonicConfig
from dragoman.train.nets.monotonic.decisions import decide_every
from dragoman.train.nets.subsampling import ConvSubsampling
from dragoman.train.settings import Whole


@dataclass(frozen=True)
class JointConfig(LayerSettings, MonotonicConfig):
    """The paper's sizes (table 2); `ratio` is for speech, since text decides at every unit."""

    features: Whole = 80
    conv_channels: Whole = 1024
    size: Whole = 512
    speech_layers: Whole = 12
    text_layers: Whole = 6  # these are also the top ones of the speech encoder
    decoder_layers: Whole = 6
    heads: Whole = 8
    ffn: Whole = 2048
    tied_output: bool = False

    def __post_init__(self) -> None:
        if self.text_layers > self.speech_layers:
            raise DragomanError(
                f"The {self.text_layers} text layers are the top of the speech encoder, which has "
                f"only {self.speech_layers}; give it at least as many."
            )


class JointMma(MonotonicNet):
    """Speech [B, T, F] or source units [B, T] -> states in one space -> target units."""

    config: JointConfig
    source_rows = ("embedding",)

    def __init__(self, config: JointConfig, vocabularies: Vocabularies):
        super().__init__(config, vocabularies)
        own = config.speech_layers - config.text_layers
        layer = config.layer(config.size, config.heads, config.ffn)
        self.feature_norm = FeatureNorm(config.features)
        self.subsampling = ConvSubsampling(config.features, config.conv_channels, config.size)
        self.embedding = Embedding(vocabularies.source, config.size)
        self.dropout = nn.Dropout(config.dropout)
        self.speech_layers = nn.ModuleList(EncoderLayer(layer) for _ in range(own))
        self.shared_layers = nn.ModuleList(EncoderLayer(layer) for _ in range(config.text_layers))
        self.norm = nn.LayerNorm(config.size) if config.pre_norm else nn.Identity()
        self.decoder = MonotonicDecoder(
            vocabularies.target, config.decoder_layers, layer, config, config.tied_output
        )

    def encode(self, features: Tensor, lengths: Tensor) -> Encoded:
        """Speech [B, T, F] -> a quarter of the frames as states."""
        x, lengths = self.subsampling(self.feature_norm(features, lengths), lengths)
        positions = sinusoids(torch.arange(x.shape[1], device=x.device), x.shape[2])
        encoded = Encoded(scaled(x) + positions, lengths)
        return self._through([*self.speech_layers, *self.shared_layers], encoded)

    def encode_text(self, units: Tensor, lengths: Tensor) -> Encoded:
        """Source units [B, T] -> as many states."""
        return self._through(self.shared_layers, Encoded(self.embedding(units), lengths))

    def _through(self, layers: list[nn.Module] | nn.ModuleList, encoded: Encoded) -> Encoded:
        x, bias = self.dropout(encoded.states), encoded.bias
        for layer in layers:
            x = layer(x, bias)
        return Encoded(self.norm(x), encoded.lengths)

    def align_text(self, tokens: Tensor, text: Encoded, energies: bool = False) -> Aligned:
        """tokens [B, U] read from encoded text, with a decision at every source unit."""
        decisions = decide_every(1, text.lengths, text.states.shape[1])
        return self.align(tokens, text, decisions, energies)
