"""The encoder, for windows of different lengths in one batch.

A window that is filled up to the length of others is encoded as if it were alone: what fills it up
is silent for the convolutions, and nobody looks at it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.models.gpu.encoding import Layers
from dragoman.models.gpu.layers import Reader


class Encoder:
    """From log-mel frames to states, one of two frames."""

    def __init__(self, reader: Reader) -> None:
        self._first = reader.convolution("encoder/conv1")
        self._second = reader.convolution("encoder/conv2")
        self._positions = reader.tensor("encoder/position_encodings/encodings")
        self._layers = Layers(reader, int(reader.weights.stored("encoder/num_heads")))
        self.bands = reader.weights.stored("encoder/conv1/weight").shape[1]
        self.width = self._layers.width
        self.most_states = len(self._positions)

    def __call__(self, mel: Tensor, frames: Tensor) -> Tensor:
        """`[windows, frames, bands]`, of which so many frames count, to `[windows, states, width]`.

        The number of frames is even.
        """
        counts = torch.arange(mel.shape[1], device=mel.device) < frames[:, None]
        x = functional.gelu(self._first(_threes(mel * counts[..., None], 1)))
        x = functional.gelu(self._second(_threes(x * counts[..., None], 2)))
        return self._layers(x + self._positions[: x.shape[1]], counts[:, ::2])


def _threes(x: Tensor, step: int) -> Tensor:
    """Every frame, or every second, between its neighbours: `[batch, n, 3 * channels]`, the three
    numbers of a channel together. Beside the first and the last frame there is silence."""
    return functional.pad(x, (0, 0, 1, 1)).unfold(1, 3, step).flatten(2)
