"""The encoder, for windows of different lengths in one batch.

A window that is filled up to the length of others is encoded as if it were alone: what fills it up
is silent for the convolutions, and nobody looks at it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from dragoman.models.gpu.layers import Reader, joined, looking

# Neither flash attention, which takes no mask, nor cuDNN's, which makes a plan for every shape.
BACKENDS = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class Encoder:
    """From log-mel frames to states, one of two frames."""

    def __init__(self, reader: Reader) -> None:
        self._first = reader.convolution("encoder/conv1")
        self._second = reader.convolution("encoder/conv2")
        self._positions = reader.tensor("encoder/position_encodings/encodings")
        self._heads = heads = int(reader.weights.stored("encoder/num_heads"))
        names = [f"encoder/layer_{layer}" for layer in range(reader.weights.layers("encoder"))]
        self._layers = [
            (reader.attention(f"{name}/self_attention", heads), reader.thought(f"{name}/ffn"))
            for name in names
        ]
        self._norm = reader.norm("encoder/layer_norm")
        self.bands = reader.weights.stored("encoder/conv1/weight").shape[1]
        self.width = self._norm.gamma.shape[0]
        self.most_states = len(self._positions)

    def __call__(self, mel: Tensor, frames: Tensor) -> Tensor:
        """`[windows, frames, bands]`, of which so many frames count, to `[windows, states, width]`.

        The number of frames is even.
        """
        counts = torch.arange(mel.shape[1], device=mel.device) < frames[:, None]
        x = functional.gelu(self._first(_threes(mel * counts[..., None], 1)))
        x = functional.gelu(self._second(_threes(x * counts[..., None], 2)))
        x = x + self._positions[: x.shape[1]]
        # On a GPU, a mask whose numbers are not side by side is only taken by the slowest kernel.
        seen = counts[:, ::2].contiguous()[:, None, None, :]
        with sdpa_kernel(BACKENDS):
            for attention, think in self._layers:
                q, k, v = looking(attention, x, self._heads)
                looked = functional.scaled_dot_product_attention(q, k, v, seen, scale=1.0)
                x = x + attention.outward(joined(looked))
                x = x + think(x)
        return self._norm(x)


def _threes(x: Tensor, step: int) -> Tensor:
    """Every frame, or every second, between its neighbours: `[batch, n, 3 * channels]`, the three
    numbers of a channel together. Beside the first and the last frame there is silence."""
    return functional.pad(x, (0, 0, 1, 1)).unfold(1, 3, step).flatten(2)
