"""The layers of an encoder, for sources of different lengths in one batch.

One that is filled up to the length of others is encoded as if it were alone.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from dragoman.models.gpu.layers import Reader, Turns, joined, looking

# Neither flash attention, which takes no mask, nor cuDNN's, which makes a plan for every shape.
BACKENDS = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class Layers:
    """Every place looks at all others of its source."""

    def __init__(self, reader: Reader, heads: int, *, turned: int = 0) -> None:
        """`turned`: numbers of a head that turn with their place."""
        self._heads = heads
        names = [f"encoder/layer_{layer}" for layer in range(reader.weights.layers("encoder"))]
        self._layers = [
            (
                reader.attention(f"{name}/self_attention", heads, turned=turned),
                reader.thought(f"{name}/ffn"),
            )
            for name in names
        ]
        self._norm = reader.norm("encoder/layer_norm")
        self.width = self._norm.gamma.shape[0]

    def __call__(self, x: Tensor, real: Tensor, turns: Turns | None = None) -> Tensor:
        """States of `[batch, n, width]`, of which those count that are `real`, `[batch, n]`."""
        # On a GPU, a mask whose numbers are not side by side is only taken by the slowest kernel.
        seen = real.contiguous()[:, None, None, :]
        with sdpa_kernel(BACKENDS):
            for attention, think in self._layers:
                q, k, v = looking(attention, x, self._heads, turns)
                looked = functional.scaled_dot_product_attention(q, k, v, seen, scale=1.0)
                x = x + attention.outward(joined(looked))
                x = x + think(x)
        return self._norm(x)
