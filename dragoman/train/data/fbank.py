"""Kaldi's log-mel filterbank in PyTorch, for whole batches on any device.

The same numbers as kaldi-native-fbank without dither (tested), at the cost of a batched FFT. On a
GPU what counts is how often the frames are written to memory, so what can be done to the sound, of
which they hold every sample two and a half times, is done to the sound.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.audio.chunk import RATE

WINDOW, SHIFT, FFT = 400, 160, 512
LOWEST = 20.0  # Hz
PREEMPHASIS = 0.97


class Fbank(nn.Module):
    """Sound [B, samples] in the int16 range -> features [B, frames, mels], and frame counts."""

    window: Tensor
    filters: Tensor

    def __init__(self, mels: int = 80):
        super().__init__()
        self.mels = mels
        self.register_buffer("window", padded(povey_window()), persistent=False)
        self.register_buffer("filters", mel_filters(mels), persistent=False)

    def forward(self, sound: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        # Kaldi takes the frame's mean from it, then 0.97 of each sample from the next: of the mean
        # 0.03 are left. A frame's first sample follows itself; the window makes it 0 in any case.
        mean = sound.unfold(-1, WINDOW, SHIFT).mean(-1, keepdim=True)
        emphasised = padded(sound[..., 1:] - PREEMPHASIS * sound[..., :-1], before=1)
        frames = emphasised.unfold(-1, FFT, SHIFT)
        frames = (frames - (1 - PREEMPHASIS) * mean) * self.window
        spectrum = torch.view_as_real(torch.fft.rfft(frames))[..., : FFT // 2, :]
        real, imaginary = spectrum.unbind(-1)
        energy = torch.addcmul(real.square(), imaginary, imaginary) @ self.filters
        return energy.clamp_min(torch.finfo(energy.dtype).eps).log(), frame_count(lengths)


def padded(samples: Tensor, before: int = 0) -> Tensor:
    """With the zeros between a window's last sample and those that the FFT wants."""
    return F.pad(samples, (before, FFT - WINDOW))


def frame_count(samples: Tensor) -> Tensor:
    """Frames that lie wholly inside: what Kaldi calls snip_edges."""
    return torch.clamp((samples - WINDOW) // SHIFT + 1, min=0)


def povey_window() -> Tensor:
    """A Hann window to the power 0.85."""
    phase = torch.arange(WINDOW, dtype=torch.float64) * (2 * math.pi / (WINDOW - 1))
    return (0.5 - 0.5 * phase.cos()).pow(0.85).float()


def mel_filters(mels: int) -> Tensor:
    """Triangles, equally wide on the mel scale: [FFT / 2, mels]."""

    def mel(hertz: Tensor) -> Tensor:
        return 1127.0 * torch.log1p(hertz / 700.0)

    edges = torch.linspace(
        mel(torch.tensor(LOWEST, dtype=torch.float64)).item(),
        mel(torch.tensor(RATE / 2, dtype=torch.float64)).item(),
        mels + 2,
        dtype=torch.float64,
    )
    bins = mel(torch.arange(FFT // 2, dtype=torch.float64) * RATE / FFT).unsqueeze(1)
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    rise, fall = (bins - left) / (centre - left), (right - bins) / (right - centre)
    return torch.minimum(rise, fall).clamp_min(0).float()
