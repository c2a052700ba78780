"""Three pitch features beside the filterbank (83 in all, paper 003), after Kaldi's tracker.

Per frame: how periodic the sound is, the logarithm of the pitch against its own recent mean, and
its change. The tracker follows Ghahremani et al. 2014 (normalised cross-correlation at 4 kHz, a
cost for jumping between lags), but looks only backwards: chunk by chunk it gives the same numbers
as all at once.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.models.exported.pitch import (
    BALLAST,
    DECIMATION,
    HIGHEST,
    JUMP,
    LAGS,
    LOW_RATE,
    LOWEST,
    REACH,
    RECENT,
    SIZE,
    STEP,
)
from dragoman.train.data.fbank import SHIFT, WINDOW


class Pitch(nn.Module):
    """Sound [B, samples] in the int16 range -> [B, frames, 3], frame by frame as `Fbank`."""

    lags: Tensor
    jumps: Tensor
    low_pass: Tensor

    def __init__(self) -> None:
        super().__init__()
        lags = torch.exp(
            torch.linspace(math.log(LOW_RATE / HIGHEST), math.log(LOW_RATE / LOWEST), LAGS)
        )
        distance = torch.log(lags).unsqueeze(0) - torch.log(lags).unsqueeze(1)
        taps = torch.arange(-REACH, REACH + 1) / DECIMATION
        low_pass = torch.sinc(taps) * torch.hann_window(2 * REACH + 3, periodic=False)[1:-1]
        self.register_buffer("lags", lags, persistent=False)
        self.register_buffer("jumps", JUMP * distance.square(), persistent=False)
        self.register_buffer("low_pass", low_pass / low_pass.sum(), persistent=False)

    def forward(self, sound: Tensor) -> Tensor:
        similarity = self.similarity(sound)
        lag = self.follow(similarity)
        periodic = similarity.gather(2, lag.unsqueeze(2)).squeeze(2).clamp(-1, 1)
        height = (LOW_RATE / self.lags).log()[lag]
        weight = 0.01 + periodic.clamp(min=0)
        recent = _recent_sum(height * weight) / _recent_sum(weight)
        change = height - F.pad(height, (1, 0), mode="replicate")[:, :-1]
        voicing = 2 * ((1.0001 - periodic).clamp(min=0) ** 0.15 - 1)
        return torch.stack([voicing, height - recent, 10 * change], dim=2)

    def similarity(self, sound: Tensor) -> Tensor:
        """Normalised cross-correlation of each frame with itself a lag earlier: [B, frames, L]"""
        low = F.conv1d(F.pad(sound, (REACH, REACH)).unsqueeze(1), self.low_pass.view(1, 1, -1))
        low = low.squeeze(1)[:, ::DECIMATION]
        longest = math.ceil(float(self.lags[-1])) + 1
        past = F.pad(low, (longest, 0)).unfold(1, SIZE + longest, STEP)
        frames = (sound.shape[1] - WINDOW) // SHIFT + 1
        past = past[:, :frames] - past[:, :frames].mean(-1, keepdim=True)
        now = past[..., longest:]
        found = []
        for lag in self.lags.tolist():
            earlier = _at(past, longest - lag, SIZE)
            top = (now * earlier).sum(-1)
            bottom = (now.square().sum(-1) * earlier.square().sum(-1) + BALLAST**2 * SIZE).sqrt()
            found.append(top / bottom)
        return torch.stack(found, dim=2)

    def follow(self, similarity: Tensor) -> Tensor:
        """The lag that is best so far at every frame, for someone who cannot look ahead."""
        # Short lags are favoured a little: a period is also a multiple of itself.
        gain = similarity - 0.1 * (self.lags / self.lags[-1])
        total, best = torch.zeros_like(gain[:, 0]), []
        for frame in range(gain.shape[1]):
            total = (total.unsqueeze(1) - self.jumps).amax(2) + gain[:, frame]
            total = total - total.amax(1, keepdim=True)
            best.append(total.argmax(1))
        return torch.stack(best, dim=1)


def _at(frames: Tensor, start: float, size: int) -> Tensor:
    """`size` samples from a fractional place on, by linear interpolation."""
    whole = int(start)
    part = start - whole
    return frames[..., whole : whole + size] * (1 - part) + (
        frames[..., whole + 1 : whole + 1 + size] * part
    )


def _recent_sum(x: Tensor) -> Tensor:
    """The sum of the last RECENT frames, this one included: [B, frames]"""
    return F.avg_pool1d(F.pad(x.unsqueeze(1), (RECENT - 1, 0)), RECENT, 1).squeeze(1) * RECENT
