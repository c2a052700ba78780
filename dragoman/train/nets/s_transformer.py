"""S-Transformer (Di Gangi et al. 2019), the net under Ma et al. 2020.

Two strided 2-D convolutions see the speech as a picture of time and frequency; two blocks of 2-D
attention relate its rows and its columns; then a Transformer encoder whose attention is drawn to
what is near by a distance penalty. Padding is masked everywhere, so that an item does not depend
on its companions in the batch.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.train.nets.layers import (
    EncoderLayer,
    LayerConfig,
    SelfAttention,
    attend,
    linear,
    padding_bias,
    valid,
)
from dragoman.train.nets.norms import MaskedBatchNorm
from dragoman.train.nets.transformer import Transformer, TransformerConfig
from dragoman.train.settings import BelowOne, Count, Whole


@dataclass(frozen=True)
class STransformerConfig(TransformerConfig):
    """The base size of the paper; big is size 512, heads 8, feed-forward 1024."""

    conv_channels: Whole = 64
    encoder_layers: Whole = 6
    encoder_ffn: Whole = 768
    decoder_ffn: Whole = 768
    dropout: BelowOne = 0.3
    ctc_layer: Count = 0
    maps: Whole = 4  # heads of the 2-D attention
    penalty: Literal["log", "gauss", "none"] = "log"


class MaskedConv(nn.Module):
    """Conv2d 3x3, then ReLU and batch norm in the order given: [B, C, T, F] -> [B, C', T', F']"""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, norm_first: bool = True):
        super().__init__()
        self.norm_first, self.stride = norm_first, stride
        self.convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)
        self.norm = MaskedBatchNorm(outputs, axis=1)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Frames past the lengths [B] count as zeros; returns zeros past the new lengths."""
        x = self.convolution(x * frames_of(x, lengths))
        lengths = (lengths + self.stride - 1) // self.stride
        mask = frames_of(x, lengths)
        x = F.relu(self.norm(x, mask)) if self.norm_first else self.norm(F.relu(x), mask)
        return x * mask, lengths


def frames_of(x: Tensor, lengths: Tensor) -> Tensor:
    """Which frames of x [B, C, T, F] there are: [B, 1, T, 1]"""
    return valid(lengths, x.shape[2])[:, None, :, None]


class Attention2d(nn.Module):
    """Attention along time and along frequency, one channel a head, added to its input."""

    def __init__(self, channels: int, maps: int):
        super().__init__()
        self.maps = maps
        self.qkv = MaskedConv(channels, 3 * maps)
        self.out = MaskedConv(2 * maps, channels)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, C, T, F] -> [B, C, T, F]"""
        query, key, value = self.qkv(x, lengths)[0].chunk(3, dim=1)  # [B, maps, T, F]
        by_time = attend(query, key, value, padding_bias(lengths, x.shape[2]), scale=1.0)
        # Turned, padding adds zeros.
        query, key, value = (part.transpose(-1, -2) for part in (query, key, value))
        by_frequency = attend(query, key, value, None, scale=1.0).transpose(-1, -2)
        both = torch.cat([by_time, by_frequency], dim=1)
        return x + self.out(both, lengths)[0]


class SpeechPicture(nn.Module):
    """The front end: convolutions, 2-D attention, one vector a frame: [B, T, F] -> [B, T/4, D]"""

    def __init__(self, config: STransformerConfig):
        super().__init__()
        channels = config.conv_channels
        self.first = MaskedConv(1, channels, stride=2, norm_first=False)
        self.second = MaskedConv(channels, channels, stride=2, norm_first=False)
        self.dropout = nn.Dropout(max(config.dropout, 0.1) if config.dropout else 0.0)
        self.blocks = nn.ModuleList(Attention2d(channels, config.maps) for _ in range(2))
        quarter = ((config.features + 1) // 2 + 1) // 2
        self.flatten = linear(channels * quarter, config.size)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x, lengths = self.first(features.unsqueeze(1), lengths)
        x, lengths = self.second(self.dropout(x), lengths)
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x, lengths)
        return F.relu(self.flatten(x.transpose(1, 2).flatten(2))), lengths


class PenalisedAttention(SelfAttention):
    """softmax(q k' / sqrt(K) - penalty(|i - j|)) v"""

    def __init__(self, config: LayerConfig, penalty: str):
        super().__init__(config)
        self.penalty = penalty
        if penalty == "gauss":
            self.deviation = nn.Parameter(torch.ones(config.heads))

    def forward(  # type: ignore[override]
        self, x: Tensor, bias: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        return super().forward(x, bias - self.penalties(x.shape[1], x.device))

    def penalties(self, size: int, device: torch.device | None = None) -> Tensor:
        """What each distance costs each head: [1 or H, size, size]"""
        steps = torch.arange(size, device=device)
        distance = (steps - steps.unsqueeze(1)).abs().unsqueeze(0).float()
        if self.penalty == "log":
            return distance.clamp(min=1).log()
        if self.penalty == "gauss":
            return distance**2 / (2 * self.deviation.view(-1, 1, 1) ** 2)
        return torch.zeros_like(distance)


class STransformer(Transformer):
    """Transformer (with CTC, if asked for) behind the picture, with penalised attention."""

    config: STransformerConfig

    def make_front(self) -> nn.Module:
        return SpeechPicture(self.config)

    def make_layer(self) -> nn.Module:
        layer = self.config.encoder
        return EncoderLayer(layer, PenalisedAttention(layer, self.config.penalty))
