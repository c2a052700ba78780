"""Synthetic rooms and noises: impulse responses and noise that a seed makes, in numpy.

A room is a direct sound, a few early reflections and an exponentially decaying diffuse tail
(Polack's statistical model): what a far-field microphone hears, without measuring any room.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SOUND_SPEED = 343.0  # m/s
NOISE_SAMPLES = 1 << 15


@dataclass(frozen=True, slots=True)
class Room:
    """Reverberation time (s), distance of the speaker (m), direct-to-reverberant ratio (dB)."""

    rt60: float
    distance: float
    direct_to_reverberant: float


def random_room(random: np.random.Generator) -> Room:
    """From a booth to a plenary hall."""
    return Room(
        rt60=float(np.exp(random.uniform(np.log(0.12), np.log(0.9)))),
        distance=float(random.uniform(0.3, 3.0)),
        direct_to_reverberant=float(random.uniform(0.0, 18.0)),
    )


def impulse_response(room: Room, rate: int, random: np.random.Generator) -> np.ndarray:
    """float32 response whose first sample is the direct sound and whose energy is 1.

    The direct sound comes at time zero: words keep their times.
    """
    length = int(room.rt60 * rate)
    times = np.arange(length) / rate
    # 60 dB in rt60 seconds: amplitude exp(-t * ln(1000) / rt60).
    tail = random.standard_normal(length) * np.exp(-times * np.log(1000.0) / room.rt60)
    first = int(rate * room.distance / SOUND_SPEED)
    tail[: max(1, min(first, length - 1))] = 0.0
    for delay in random.uniform(first, first + 0.03 * rate, size=6).astype(int):
        if 0 < delay < length:
            tail[delay] += random.choice((-1.0, 1.0)) * 3.0 * np.exp(-delay / (0.02 * rate))
    tail *= 10 ** (-room.direct_to_reverberant / 20) / max(float(np.linalg.norm(tail)), 1e-9)
    tail[0] = 1.0
    return (tail / np.linalg.norm(tail)).astype(np.float32)


def in_room(sound: np.ndarray, response: np.ndarray) -> np.ndarray:
    """The sound as the microphone hears it; same length (the last echoes are cut)."""
    size = _fast_length(len(sound) + len(response) - 1)
    spectrum = np.fft.rfft(sound, size) * np.fft.rfft(response, size)
    return np.fft.irfft(spectrum, size)[: len(sound)].astype(np.float32)


def coloured_noise(samples: int, slope: float, random: np.random.Generator) -> np.ndarray:
    """Noise of unit power whose power falls with frequency as f^-slope (0 white, 1 pink, 2 brown).

    Two seconds are made and repeated from a random point on; the inverse FFT is periodic, so
    there is no seam.
    """
    size = NOISE_SAMPLES
    spectrum = np.fft.rfft(random.standard_normal(size).astype(np.float32))
    frequency = np.maximum(np.arange(len(spectrum), dtype=np.float32), 8.0)
    one = np.fft.irfft(spectrum * frequency ** (-slope / 2), size)
    one = (one / max(float(np.sqrt(np.mean(one**2))), 1e-9)).astype(np.float32)
    start = int(random.integers(size))
    return np.resize(np.roll(one, -start), samples)


def add_noise(
    sound: np.ndarray, snr_db: float, slope: float, random: np.random.Generator
) -> np.ndarray:
    """Sound plus coloured noise at a signal-to-noise ratio over the whole sound."""
    power = float(np.mean(sound.astype(np.float64) ** 2))
    scale = np.sqrt(power / 10 ** (snr_db / 10))
    return sound + np.float32(scale) * coloured_noise(len(sound), slope, random)


def _fast_length(least: int) -> int:
    """The smallest 2^a 3^b 5^c that is at least `least`: FFTs of it are quick."""
    best = 1 << (least - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            two = three
            while two < least:
                two *= 2
            best = min(best, two)
            three *= 3
        five *= 5
    return best
