"""Channels that are louder than all others, made as quiet as these.

What a norm of Moonshine's encoder puts out is nearly constant and ten times as large as the rest in
two or three channels. In 8 bits, where a row of all channels has one scale, this left the others a
tenth of the steps, and words came and went with noise of a millionth (`python -m benchmarks
rounding`). A loud channel is divided where its norm makes it, and the matrix that reads it
multiplied: the same net, and as much work.

Which channels are loud does not depend on what is said, so a made-up sound tells.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dragoman.audio.chunk import RATE, Samples
from dragoman.models.search import Floats
from dragoman.models.whisper.weights import Weights

LOUD = 3  # times as large as the channel in the middle
TINY = 1e-9  # where all are silent
SECONDS, VOICE, SYLLABLES = 5, 120, 4  # of the made-up sound; of its voice and rhythm, Hz


def readers(weights: Weights) -> dict[str, str]:
    """The encoder's norms, and the matrix that reads each of them."""
    parts = [
        f"encoder/layer_{layer}/{part}"
        for layer in range(weights.layers("encoder"))
        for part in ("self_attention", "ffn")
    ]
    return {f"{part}/layer_norm": f"{part}/linear_0" for part in parts}


def eased(weights: Weights, put_out: Mapping[str, Floats]) -> Weights:
    """The same net with quiet channels; `put_out` by norm, `[..., width]`."""
    arrays = {name: weights.stored(name) for name in weights}
    matrices = readers(weights)
    for norm, some in put_out.items():
        factors = too_loud(some)
        arrays[f"{norm}/gamma"] = weights.array(f"{norm}/gamma") / factors
        matrix = f"{matrices[norm]}/weight"
        arrays[matrix] = weights.array(matrix) * factors
    return Weights(weights.path, arrays)


def too_loud(put_out: Floats) -> Floats:
    """By how much each channel is louder than it should be; 1: it is quiet."""
    peaks = np.abs(put_out.reshape(-1, put_out.shape[-1])).max(axis=0)
    factors: Floats = np.maximum(peaks / (LOUD * np.median(peaks) + TINY), 1)
    return factors


def murmur() -> Samples:
    """Like a voice that says nothing: harmonics, in the rhythm of syllables, and some noise."""
    time = np.arange(SECONDS * RATE) / RATE
    voice = sum(np.sin(2 * np.pi * VOICE * n * time) / n for n in range(1, 20))
    rhythm = 1 + np.sin(2 * np.pi * SYLLABLES * time)
    noise = np.random.default_rng(0).normal(scale=0.005, size=len(time))
    sound: Samples = (0.1 * voice * rhythm + noise).astype(np.float32)
    return sound
