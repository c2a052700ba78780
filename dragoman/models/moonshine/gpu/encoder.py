"""Moonshine's encoder for whole windows of different lengths in one batch.

On a GPU, a window is encoded anew at every step, as the net was trained: nothing of it is final
while it is open. A window that is filled up to the length of others is encoded as if it were alone.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.models.gpu.encoding import Layers
from dragoman.models.gpu.layers import Reader, Turns, aligned_size
from dragoman.models.moonshine.encoder import BEHIND, STATE
from dragoman.models.moonshine.graph import EPSILON


class Encoder:
    """From sound to states."""

    def __init__(self, reader: Reader) -> None:
        # What is faint has few digits in 16 bits: up to its norm, sound is in 32.
        plain = Reader(reader.weights, reader.device, torch.float32)
        self._first = plain.tensor("encoder/conv1/weight")
        self._gamma = plain.tensor("encoder/group_norm/gamma")
        self._beta = plain.tensor("encoder/group_norm/beta")
        self._convolutions = [
            (reader.tensor(f"encoder/conv{n}/weight"), reader.tensor(f"encoder/conv{n}/bias"), step)
            for n, step in ((2, 3), (3, 2))
        ]
        self._angles = plain.tensor("encoder/angles")
        self._heads = heads = int(reader.weights.stored("decoder/num_heads"))
        self._layers = Layers(reader, heads, turned=2 * len(self._angles))
        self._dtype = reader.dtype
        self.width = self._layers.width

    def bytes_of(self, states: int) -> int:
        """About how much memory a window of so many states takes."""
        frames = 6 * states  # of the first convolution: as they are, of which they are, normed
        return 4 * self.width * (3 * frames + 16 * states) + 4 * STATE * states

    def __call__(
        self, samples: Tensor, counts: Tensor, levels: Tensor, heard: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`[windows, samples]` of which so many states count, to `[windows, states, width]`.

        `levels` are the mean and the mean square of what each speaker was heard saying before, and
        `heard` of how many frames; the new ones come out with the states.
        """
        x, levels = self._normed(samples, counts, levels, heard)
        x = x.to(self._dtype)
        for weight, bias, step in self._convolutions:
            x = functional.gelu(functional.conv1d(x, weight, bias, stride=step))
        return self._looked(x.transpose(1, 2), counts), levels

    def _normed(
        self, samples: Tensor, counts: Tensor, levels: Tensor, heard: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Frames of the first convolution, normed over all that was heard so far."""
        x = torch.tanh(functional.conv1d(samples[:, None], self._first, stride=64))
        frames = frames_of(counts)
        real = (torch.arange(x.shape[2], device=x.device) < frames[:, None])[:, None]
        numbers = frames * x.shape[1]
        sums = [(part * real).sum(dim=(1, 2)) / numbers for part in (x, x * x)]
        share = (frames / (heard + frames))[:, None]
        levels = levels + share * (torch.stack(sums, dim=1) - levels)
        mean, square = levels[:, :1, None], levels[:, 1:, None]
        spread = torch.sqrt(square - mean * mean + EPSILON)
        return (x - mean) / spread * self._gamma + self._beta, levels

    def _looked(self, x: Tensor, counts: Tensor) -> Tensor:
        """States of frames, which look at all others of their window."""
        places = torch.arange(x.shape[1], device=x.device)
        size = aligned_size(self.width // self._heads)
        angles = places[:, None] * self._angles
        turns = Turns.of(angles.cos().to(x.dtype), angles.sin().to(x.dtype), size)
        return self._layers(x, places < counts[:, None], turns)


def frames_of(states: Tensor) -> Tensor:
    """How many frames of the first convolution so many states are made of."""
    return (states * STATE + BEHIND - 127) // 64 + 1
