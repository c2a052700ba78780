"""The encoder of a text net, for sentences of different lengths in one batch.

A sentence that is filled up to the length of others is read as if it were alone.
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
    """From source units to states."""

    def __init__(self, reader: Reader) -> None:
        self._embeddings = reader.tensor("encoder/embeddings/weight")
        self._positions = reader.tensor("encoder/position_encodings/encodings")
        self._heads = heads = int(reader.weights.stored("encoder/num_heads"))
        names = [f"encoder/layer_{layer}" for layer in range(reader.weights.layers("encoder"))]
        self._layers = [
            (reader.attention(f"{name}/self_attention", heads), reader.thought(f"{name}/ffn"))
            for name in names
        ]
        self._norm = reader.norm("encoder/layer_norm")
        self._number = torch.finfo(reader.dtype).bits // 8

    def bytes_of(self, units: int) -> int:
        """About how much memory a sentence of so many units takes."""
        width = self._embeddings.shape[1]
        return units * (16 * width + self._heads * units) * self._number

    def __call__(self, units: Tensor, counts: Tensor) -> Tensor:
        """`[sentences, n]`, of which so many count, to `[sentences, n, width]`."""
        places = torch.arange(units.shape[1], device=units.device)
        x = self._embeddings[units] + self._positions[places.clamp(max=len(self._positions) - 1)]
        # On a GPU, a mask whose numbers are not side by side is only taken by the slowest kernel.
        seen = (places < counts[:, None])[:, None, None, :].contiguous()
        with sdpa_kernel(BACKENDS):
            for attention, think in self._layers:
                q, k, v = looking(attention, x, self._heads)
                looked = functional.scaled_dot_product_attention(q, k, v, seen, scale=1.0)
                x = x + attention.outward(joined(looked))
                x = x + think(x)
        return self._norm(x)
