"""From a batch's sound to the features a net is fed: speed, rooms, noise, log-mel, masks.

Everything happens for the whole batch at once, on the device; the net itself subtracts the
corpus' mean. Chance depends on the seed and the batch's number only.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.models.exported.features import MELS
from dragoman.models.exported.pitch import FEATURES
from dragoman.train.data.augment import (
    SPEC_AUGMENT,
    echoes,
    in_rooms,
    play_at,
    shift_pitch,
    tilt,
    with_noise,
)
from dragoman.train.data.fbank import Fbank
from dragoman.train.data.loader import Batch
from dragoman.train.data.pitch import Pitch
from dragoman.train.data.rooms import NOISE_SAMPLES, coloured_noise, impulse_response, random_room
from dragoman.train.recipe import Augment

FULL_SCALE = 32768.0
_ROOMS, _NOISES = 64, 16  # prepared once and then drawn from


class FrontEnd(nn.Module):
    """Batch -> features [B, frames, F] and their lengths; without features the sound itself,
    [B, samples], from -1 to 1."""

    nothing: Tensor
    rooms: Tensor
    noises: Tensor

    def __init__(self, features: int, augment: Augment, seed: int):
        super().__init__()
        if not features and augment.spec != "none":
            raise DragomanError(
                "Masks (augment.spec) are put on features, and this net hears the sound itself: "
                "set augment.spec to none."
            )
        self.augment, self.seed = augment, seed
        self.random: torch.Generator | None = None  # made on the device where it is first needed
        self.pitch = Pitch() if features == MELS + FEATURES else None
        bands = features if self.pitch is None else MELS
        self.fbank = Fbank(bands) if bands else None
        random = np.random.default_rng(seed)
        rooms = _rooms(random) if augment.rooms else torch.zeros(0)
        noises = _noises(random) if augment.noise else torch.zeros(0)
        self.register_buffer("nothing", torch.zeros(0), persistent=False)
        self.register_buffer("rooms", rooms, persistent=False)
        self.register_buffer("noises", noises, persistent=False)

    @torch.no_grad()
    def forward(self, batch: Batch, fill: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """With `fill` (what masks show, [F]) the batch is augmented; without, heard as it is."""
        # Features stay in single precision whatever the net computes in.
        with torch.autocast(batch.sound.device.type, enabled=False):
            return self.heard(batch, fill)

    def heard(self, batch: Batch, fill: Tensor | None) -> tuple[Tensor, Tensor]:
        sound = batch.sound.float()
        if batch.perturbed:
            sound = play_at(sound, batch.speeds, batch.width)
        if fill is None:
            return self.features(sound, batch.samples)
        if not capturing():  # whoever replays a graph seeds its chance before
            self.seed_chance(batch.number, sound.device)
        random = self.random
        assert random is not None  # it was seeded
        sound = self.world(sound, batch, random)
        features, lengths = self.features(sound, batch.samples)
        if self.augment.spec != "none":
            features = SPEC_AUGMENT[self.augment.spec](features, lengths, fill, random)
        return features, lengths

    def seed_chance(self, number: int, device: torch.device) -> None:
        """Let the seed and a batch's number decide all that is drawn next."""
        if self.random is None or self.random.device != device:
            self.random = torch.Generator(device)
        self.random.manual_seed(self.seed * 1_000_003 + number)

    def features(self, sound: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
        if self.fbank is None:
            return sound / FULL_SCALE, samples
        features, lengths = self.fbank(sound, samples)
        if self.pitch is not None:
            features = torch.cat([features, self.pitch(sound)], dim=2)
        return features, lengths

    def world(self, sound: Tensor, batch: Batch, random: torch.Generator) -> Tensor:
        """Effects, rooms and noise, each for its share of the batch: [B, samples]"""
        augment, (items, width), device = self.augment, sound.shape, sound.device
        inside = torch.arange(width, device=device) < batch.samples.unsqueeze(1)

        def draw(low: float, high: float) -> Tensor:
            return low + (high - low) * torch.rand(items, generator=random, device=device)

        def some(share: float) -> Tensor:
            return (draw(0, 1) < share).unsqueeze(1)

        def pick(bank: Tensor) -> Tensor:
            return bank[torch.randint(len(bank), (items,), generator=random, device=device)]

        if augment.effects:
            changed = echoes(sound, draw(0.02 * RATE, 0.2 * RATE).long(), draw(0.1, 0.5))
            sound = torch.where(some(augment.effects), changed, sound)
            sound = torch.where(some(augment.effects), tilt(sound, draw(-4, 4)), sound)
            changed = shift_pitch(sound, 2 ** (draw(-3, 3) / 12))  # up to three semitones
            sound = torch.where(some(augment.effects), changed, sound)
            # Speed whose change of pitch is undone is tempo.
            tempo = some(augment.effects) & (batch.speeds != 1).unsqueeze(1)
            sound = torch.where(tempo, shift_pitch(sound, 1 / batch.speeds), sound)
        if augment.rooms:
            sound = torch.where(some(augment.rooms), in_rooms(sound, pick(self.rooms)), sound)
        if augment.noise:
            start = torch.randint(NOISE_SAMPLES, (1,), generator=random, device=device)
            places = (torch.arange(width, device=device) + start) % NOISE_SAMPLES  # noise repeats
            noise = pick(self.noises).index_select(1, places)
            noisy = with_noise(sound, inside, noise, draw(5, 35))
            sound = torch.where(some(augment.noise), noisy, sound)
        return sound * inside


def capturing() -> bool:
    """Whether what is run now becomes part of a CUDA graph."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def _rooms(random: np.random.Generator) -> Tensor:
    """Impulse responses, padded to the longest: [rooms, taps]"""
    made = [impulse_response(random_room(random), RATE, random) for _ in range(_ROOMS)]
    taps = max(len(response) for response in made)
    return torch.from_numpy(np.stack([np.pad(r, (0, taps - len(r))) for r in made]))


def _noises(random: np.random.Generator) -> Tensor:
    """Periodic noises of unit power, from white to brown: [noises, samples]"""
    slopes = random.uniform(0, 2, size=_NOISES)
    return torch.from_numpy(
        np.stack([coloured_noise(NOISE_SAMPLES, slope, random) for slope in slopes])
    )
