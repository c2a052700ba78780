"""Conformer + CTC: the better offline net of Papi et al. 2022, appendix A.2.

As the Transformer, but every encoder layer is a Conformer's (Gulati et al. 2020): half a
feed-forward, self-attention with relative positions, a convolution over 31 states, half a
feed-forward. 8 decoder heads. The paper's 35.7 M parameters are reached with a feed-forward of
1024 in the encoder, of which each layer has two.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.depthwise import depthwise
from dragoman.train.nets.layers import FeedForward, LayerConfig, linear, padding_bias, scaled, valid
from dragoman.train.nets.norms import MaskedBatchNorm
from dragoman.train.nets.relative import RelativeAttention, RotaryAttention, distances, rotations
from dragoman.train.nets.residual import add_and_norm
from dragoman.train.nets.transformer import Transformer, TransformerConfig
from dragoman.train.settings import Whole

ATTENTIONS = {"relative": RelativeAttention, "rotary": RotaryAttention}


@dataclass(frozen=True)
class ConformerConfig(TransformerConfig):
    encoder_ffn: Whole = 1024
    decoder_heads: Whole = 8
    kernel: Whole = 31
    positions: Literal["relative", "rotary"] = "relative"  # rotary: less memory, a little faster

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel % 2 == 0:
            raise DragomanError(f"A Conformer's kernel must be odd, not {self.kernel}.")


class Convolution(nn.Module):
    """Gate, convolve each channel over time, normalise, mix: [B, T, D] -> [B, T, D]"""

    def __init__(self, config: LayerConfig, kernel: int):
        super().__init__()
        self.norm = nn.LayerNorm(config.size)
        self.gate = linear(config.size, 2 * config.size)
        self.depthwise = nn.Conv1d(config.size, config.size, kernel, groups=config.size)
        self.batch_norm = MaskedBatchNorm(config.size)
        self.mix = linear(config.size, config.size)

    def forward(self, normed: Tensor, mask: Tensor) -> Tensor:
        """normed: what `norm` made of x; mask [B, T, 1], 0 where x is padding"""
        one = self.depthwise
        assert one.bias is not None
        return self.finish(depthwise(self.gated(normed) * mask, one.weight, one.bias), mask)

    def gated(self, normed: Tensor) -> Tensor:
        """What enters the convolution."""
        return F.glu(self.gate(normed), dim=-1)

    def finish(self, x: Tensor, mask: Tensor) -> Tensor:
        """What becomes of the convolution's output."""
        return self.mix(F.silu(self.batch_norm(x, mask)))


class ConformerLayer(nn.Module):
    """Half a feed-forward, attention, convolution, half a feed-forward, a norm."""

    def __init__(self, config: LayerConfig, kernel: int, attention: nn.Module):
        super().__init__()
        self.first = FeedForward(config, nn.SiLU())
        self.attention = attention
        self.convolution = Convolution(config, kernel)
        self.second = FeedForward(config, nn.SiLU())
        self.first_norm, self.attention_norm, self.second_norm, self.norm = (
            nn.LayerNorm(config.size) for _ in range(4)
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, bias: Tensor, table: object, mask: Tensor) -> Tensor:
        """x [B, T, D]; `table` holds the positions that the attention works with."""
        drop = self.dropout.p if self.training else 0.0
        y = self.first(self.first_norm(x))
        x, y = add_and_norm(x, y, self.attention_norm, 0.5, drop)
        x, y = add_and_norm(x, self.attention(y, bias, table), self.convolution.norm, 1.0, drop)
        x, y = add_and_norm(x, self.convolution(y, mask), self.second_norm, 1.0, drop)
        return add_and_norm(x, self.second(y), self.norm, 0.5, drop, last=True)[1]


class Conformer(Transformer):
    """Transformer + CTC with Conformer layers: see the module."""

    config: ConformerConfig

    def __init__(self, config: ConformerConfig, vocabularies: Vocabularies):
        super().__init__(config, vocabularies)
        self.enter = linear(config.size, config.size)
        self.norm = nn.Identity()  # every layer ends in its own

    def make_layer(self) -> nn.Module:
        layer = self.config.encoder
        return ConformerLayer(layer, self.config.kernel, ATTENTIONS[self.config.positions](layer))

    def positioned(self, x: Tensor) -> Tensor:
        """Only scaled, since the attention knows the distances: [B, S, D] -> [B, S, D]"""
        return self.enter(scaled(x))

    def around(self, x: Tensor, lengths: Tensor) -> tuple[Any, ...]:
        """The padding, as a bias and as a mask, and the positions the attention works with."""
        if self.config.positions == "relative":
            table: Any = distances(x.shape[1], x.shape[2], x.device)
        else:
            width = self.config.size // self.config.encoder_heads
            table = rotations(torch.arange(x.shape[1], device=x.device), width)
        mask = valid(lengths, x.shape[1]).unsqueeze(-1)
        return padding_bias(lengths, x.shape[1]), table, mask
