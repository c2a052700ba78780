"""Transformer + CTC: the offline speech translation net of Papi et al. 2022, appendix A.1.

Convolutional subsampling, 12 encoder layers with a CTC head on the eighth, 6 decoder layers;
256 wide, 4 heads, feed-forward 2048. With 8,000 target and 5,000 source units: 32.4 M parameters
(the output layer has its own weights; tied to the embeddings it would be 30.3 M).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.train.nets.base import Encoded, FeatureNorm, Vocabularies
from dragoman.train.nets.boundaries import BoundaryHead
from dragoman.train.nets.ctc import CtcHead, compress
from dragoman.train.nets.decoder import TransformerDecoded, TransformerDecoder
from dragoman.train.nets.layers import (
    EncoderLayer,
    LayerConfig,
    LayerSettings,
    padding_bias,
    scaled,
    sinusoids,
)
from dragoman.train.nets.subsampling import ConvSubsampling
from dragoman.train.settings import Count, Whole


@dataclass(frozen=True)
class TransformerConfig(LayerSettings):
    features: Whole = 80
    conv_channels: Whole = 512
    size: Whole = 256
    encoder_layers: Whole = 12
    decoder_layers: Whole = 6
    encoder_heads: Whole = 4
    decoder_heads: Whole = 4
    encoder_ffn: Whole = 2048
    decoder_ffn: Whole = 2048
    tied_output: bool = False
    ctc_layer: Count = 8  # 1-based; 0: no CTC
    ctc_compression: bool = False
    boundaries: bool = False  # a head that fires at word ends

    def __post_init__(self) -> None:
        if self.ctc_layer > self.encoder_layers:
            raise DragomanError(
                f"CTC cannot listen to layer {self.ctc_layer} of {self.encoder_layers}; "
                "set ctc_layer to one that there is, or to 0 for no CTC."
            )

    @property
    def encoder(self) -> LayerConfig:
        return self.layer(self.size, self.encoder_heads, self.encoder_ffn)

    @property
    def decoder(self) -> LayerConfig:
        return self.layer(self.size, self.decoder_heads, self.decoder_ffn)


class Transformer(TransformerDecoded):
    """Speech [B, T, F] -> a quarter of the frames as states -> target units."""

    config: TransformerConfig

    def __init__(self, config: TransformerConfig, vocabularies: Vocabularies):
        super().__init__(config, vocabularies)
        self.feature_norm = FeatureNorm(config.features)
        self.subsampling = self.make_front()
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(self.make_layer() for _ in range(config.encoder_layers))
        self.norm = nn.LayerNorm(config.size) if config.pre_norm else nn.Identity()
        self.ctc = CtcHead(config.size, vocabularies.source) if config.ctc_layer else None
        self.boundaries = BoundaryHead(config.size) if config.boundaries else None
        self.decoder = TransformerDecoder(
            vocabularies.target, config.decoder_layers, config.decoder, config.tied_output
        )

    def make_front(self) -> nn.Module:
        """What turns features [B, T, F] and lengths into fewer, wider frames and lengths."""
        config = self.config
        return ConvSubsampling(config.features, config.conv_channels, config.size)

    def make_layer(self) -> nn.Module:
        """One encoder layer, called as layer(states, *around)."""
        return EncoderLayer(self.config.encoder)

    def positioned(self, x: Tensor) -> Tensor:
        """Scaled states with their positions: [B, S, D] -> [B, S, D]"""
        positions = sinusoids(torch.arange(x.shape[1], device=x.device), x.shape[2])
        return scaled(x) + positions

    def around(self, x: Tensor, lengths: Tensor) -> tuple[Any, ...]:
        """What every layer needs to know besides x [B, S, D]: here, where the padding is."""
        return (padding_bias(lengths, x.shape[1]),)

    def encode(self, features: Tensor, lengths: Tensor) -> Encoded:
        x, lengths = self.subsampling(self.feature_norm(features, lengths), lengths)
        x = self.dropout(self.positioned(x))
        around = self.around(x, lengths)
        logits = ctc_lengths = None
        for depth, layer in enumerate(self.layers, start=1):
            x = layer(x, *around)
            if self.ctc is not None and depth == self.config.ctc_layer:
                logits, ctc_lengths = self.ctc(x), lengths
                if self.config.ctc_compression:
                    x, lengths = compress(x, logits, lengths)
                    around = self.around(x, lengths)
        x = self.norm(x)
        ends = None if self.boundaries is None else self.boundaries(x)
        return Encoded(x, lengths, logits, ctc_lengths, ends)
