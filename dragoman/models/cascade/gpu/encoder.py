"""The encoder of a text net, for sentences of different lengths in one batch.

A sentence that is filled up to the length of others is read as if it were alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.models.gpu.encoding import Layers
from dragoman.models.gpu.layers import Reader


class Encoder:
    """From source units to states."""

    def __init__(self, reader: Reader) -> None:
        self._embeddings = reader.tensor("encoder/embeddings/weight")
        self._positions = reader.tensor("encoder/position_encodings/encodings")
        self._heads = heads = int(reader.weights.stored("encoder/num_heads"))
        self._layers = Layers(reader, heads)
        self._number = torch.finfo(reader.dtype).bits // 8

    def bytes_of(self, units: int) -> int:
        """About how much memory a sentence of so many units takes."""
        width = self._embeddings.shape[1]
        return units * (16 * width + self._heads * units) * self._number

    def __call__(self, units: Tensor, counts: Tensor) -> Tensor:
        """`[sentences, n]`, of which so many count, to `[sentences, n, width]`."""
        places = torch.arange(units.shape[1], device=units.device)
        x = self._embeddings[units] + self._positions[places.clamp(max=len(self._positions) - 1)]
        return self._layers(x, places < counts[:, None])
