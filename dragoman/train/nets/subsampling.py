"""The front end of most speech nets: features become a quarter as many, wider states."""

import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.train.nets.layers import valid


class ConvSubsampling(nn.Module):
    """Two strided convolutions over time with gated linear units: a quarter of the frames.

    Frames past an item's length are zeroed before each convolution, so an item does not depend
    on how far its batch is padded.
    """

    def __init__(self, features: int, channels: int, size: int, kernel: int = 5):
        super().__init__()
        self.first = nn.Conv1d(features, 2 * channels, kernel, stride=2, padding=kernel // 2)
        self.second = nn.Conv1d(channels, 2 * size, kernel, stride=2, padding=kernel // 2)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """features [B, T, F] -> [B, ceil(T / 4), D] and the lengths of its items"""
        x = features.transpose(1, 2)
        for convolution in (self.first, self.second):
            x = x * valid(lengths, x.shape[-1]).unsqueeze(1)
            x = F.glu(convolution(x), dim=1)
            lengths = (lengths + 1) // 2
        return x.transpose(1, 2), lengths
