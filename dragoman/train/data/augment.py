"""Augmentation of whole batches on their device; all chance comes from a generator.

Sound is float [B, samples] in the int16 range, features [B, frames, F].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

GRAIN = 800  # samples that the pitch shifter's heads read from
SINC_HALF = 16  # samples on each side that the resampling filter looks at
FREQUENCY_WIDTH, TIME_WIDTH = 27, 100  # of masks at most: bands, and frames


def play_at(sound: Tensor, speeds: Tensor, width: int) -> Tensor:
    """Each sound played at its speed (as SoX's `speed`: pitch moves too): [B, width].

    Windowed-sinc interpolation at the fractional places that the speed asks for; above speed 1
    the filter also removes what would fold back. Speed 1 gives the sound itself.
    """
    batch, samples = sound.shape
    places = (
        torch.arange(width, device=sound.device, dtype=torch.float64) * speeds.double()[:, None]
    )
    whole = places.floor()
    part = (places - whole).to(sound.dtype)
    whole = whole.long()
    cutoff = (1 / speeds).clamp(max=1.0)[:, None].to(sound.dtype)
    played = torch.zeros(batch, width, dtype=sound.dtype, device=sound.device)
    for tap in range(1 - SINC_HALF, SINC_HALF + 1):
        distance = tap - part
        window = torch.cos(distance * (math.pi / 2 / SINC_HALF)).square()
        weight = cutoff * torch.sinc(cutoff * distance) * window * (distance.abs() < SINC_HALF)
        index = whole + tap
        inside = (index >= 0) & (index < samples)
        played += sound.gather(1, index.clamp(0, samples - 1)) * weight * inside
    return played


def in_rooms(sound: Tensor, responses: Tensor) -> Tensor:
    """Convolve each sound with its impulse response [B, taps]; the length stays."""
    size = sound.shape[1] + responses.shape[1] - 1
    size = 1 << (size - 1).bit_length()
    spectrum = torch.fft.rfft(sound, size) * torch.fft.rfft(responses, size)
    return torch.fft.irfft(spectrum, size)[:, : sound.shape[1]]


def with_noise(sound: Tensor, valid: Tensor, noise: Tensor, snr_db: Tensor) -> Tensor:
    """Add noise [B, samples] of unit power at each item's signal-to-noise ratio [B]."""
    power = (sound.square() * valid).sum(1) / valid.sum(1).clamp(min=1)
    scale = (power / 10 ** (snr_db / 10)).sqrt().unsqueeze(1)
    return sound + scale * noise * valid


def echoes(sound: Tensor, delays: Tensor, decays: Tensor) -> Tensor:
    """SoX's `echo` with one tap: each sound plus itself, delayed by samples [B], decayed [B]."""
    places = torch.arange(sound.shape[1], device=sound.device) - delays.unsqueeze(1)
    delayed = sound.gather(1, places.clamp(min=0)) * (places >= 0)
    return sound + decays.unsqueeze(1) * delayed


def tilt(sound: Tensor, db_per_octave: Tensor) -> Tensor:
    """SoX's `treble` in spirit: each spectrum tilted around 1 kHz, at 16 kHz sampling."""
    spectrum = torch.fft.rfft(sound)
    hertz = torch.linspace(0, 8000, spectrum.shape[1], device=sound.device).clamp(min=50.0)
    gain = 10 ** (db_per_octave.unsqueeze(1) * torch.log2(hertz / 1000) / 20)
    return torch.fft.irfft(spectrum * gain, sound.shape[1])


def shift_pitch(sound: Tensor, factors: Tensor) -> Tensor:
    """SoX's `pitch` by its oldest means: all pitches times each factor, the duration unchanged.

    Two read heads move at the wanted pace through the last 50 ms; while one jumps back, the other
    is the one that is heard.
    """
    steps = torch.arange(sound.shape[1], device=sound.device, dtype=torch.float64)
    turns = steps * ((1 - factors.double()) / GRAIN).unsqueeze(1)
    shifted = torch.zeros_like(sound)
    for head in (0.0, 0.5):
        phase = (turns + head) % 1.0
        places = (steps - GRAIN * phase).clamp(min=0)
        whole = places.floor().long()
        part = (places - whole).to(sound.dtype)
        after = (whole + 1).clamp(max=sound.shape[1] - 1)
        read = sound.gather(1, whole) * (1 - part) + sound.gather(1, after) * part
        shifted += read * torch.sin(math.pi * phase).square().to(sound.dtype)
    return shifted


@dataclass(frozen=True)
class SpecAugment:
    """Masks of frequency and time (Park et al. 2019), without time warping."""

    frequency_masks: int
    time_masks: int

    def __call__(
        self, features: Tensor, lengths: Tensor, fill: Tensor, random: torch.Generator
    ) -> Tensor:
        """Masked features; `fill` [F] is what a mask shows, the mean of the corpus."""
        batch, frames, size = features.shape
        hidden = torch.zeros(batch, frames, size, dtype=torch.bool, device=features.device)
        sizes = torch.full((batch,), size, device=features.device)
        for _ in range(self.frequency_masks):
            widest = sizes.clamp(max=FREQUENCY_WIDTH)
            hidden |= _spans(sizes, widest, size, random).unsqueeze(1)
        for _ in range(self.time_masks):
            widest = lengths.clamp(max=TIME_WIDTH)
            hidden |= _spans(lengths, widest, frames, random).unsqueeze(2)
        return torch.where(hidden, fill.to(features.dtype), features)


SPEC_AUGMENT = {"LB": SpecAugment(1, 1), "LD": SpecAugment(2, 2)}


def _spans(lengths: Tensor, widest: Tensor, size: int, random: torch.Generator) -> Tensor:
    """One random span in each row, of a width up to `widest`, inside its length: bool [B, size]."""
    draws = torch.rand(2, len(lengths), generator=random, device=lengths.device)
    widths = (draws[0] * (widest + 1)).long()
    starts = (draws[1] * (lengths - widths + 1).clamp(min=1)).long()
    places = torch.arange(size, device=lengths.device)
    return (places >= starts.unsqueeze(1)) & (places < (starts + widths).unsqueeze(1))
