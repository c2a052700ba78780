"""The front end of most speech nets: features become a quarter as many, wider states."""

import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.train.nets.layers import valid

KERNEL = 5


class ConvSubsampling(nn.Module):
    """Two strided convolutions over time with gated linear units: a quarter of the frames.

    Frames past an item's length are zeroed before each convolution, so an item does not depend
    on how far its batch is padded.
    """

    def __init__(self, features: int, channels: int, size: int):
        super().__init__()
        self.first = nn.Conv1d(features, 2 * channels, KERNEL, stride=2, padding=KERNEL // 2)
        self.second = nn.Conv1d(channels, 2 * size, KERNEL, stride=2, padding=KERNEL // 2)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """features [B, T, F] -> [B, ceil(T / 4), D] and the lengths of its items"""
        x = features
        for convolution in (self.first, self.second):
            x = x * valid(lengths, x.shape[1]).unsqueeze(-1)
            x = F.glu((in_place if x.is_cuda else in_turn)(x, convolution), dim=-1)
            lengths = (lengths + 1) // 2
        return x, lengths


def in_turn(x: Tensor, convolution: nn.Conv1d) -> Tensor:
    """Over time, which is last for as long as it takes: [B, T, C] -> [B, T', D]"""
    return convolution(x.transpose(1, 2)).transpose(1, 2)


def in_place(x: Tensor, convolution: nn.Conv1d) -> Tensor:
    """The same of an image of height 1. Of images a GPU has kernels that take the channels last, as
    they lie: nothing is turned around, and sums over time read memory in order."""
    stride, padding = convolution.stride[0], convolution.padding[0]
    image, weight = x.transpose(1, 2).unsqueeze(2), convolution.weight.unsqueeze(2)
    made = F.conv2d(image, weight, convolution.bias, (1, stride), (0, int(padding)))
    return made.squeeze(2).transpose(1, 2)
