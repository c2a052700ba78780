"""How much of what Moonshine's encoder says is rounding.

    python -m benchmarks rounding

Its states in 8 bits beside those in 32-bit floats, and each beside themselves when noise of a
millionth is added to the sound: the recording of the demo. The distance is a share of the states'
own length. Where the processor sums up bytes slowly, both are floats.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import Samples
from dragoman.audio.source import read_audio
from dragoman.models.graphs import Graphs
from dragoman.models.kind import first_file
from dragoman.models.moonshine.encoder import Encoded, Encoder
from dragoman.models.moonshine.engine import DECODERS, ENCODERS
from dragoman.models.moonshine.weights import moonshine_weights
from dragoman.models.whisper.weights import Weights
from dragoman.store import get

TALK = Path(__file__).parent.parent / "dragoman" / "talks" / "report.en.ogg"
NOISE = 1e-6


def run() -> dict[str, float]:
    """Print how far states are from each other."""
    folder = get("moonshine-base")
    encoder, decoder = (first_file(folder, names) or folder for names in (ENCODERS, DECODERS))
    weights, sound = moonshine_weights(encoder, decoder), read_audio(TALK)
    noise = np.random.default_rng(0).normal(scale=NOISE, size=len(sound)).astype(np.float32)
    in_bytes, in_floats = (states(weights, sound, exact=exact) for exact in (False, True))
    found = {
        "bytes from floats": distance(in_bytes, in_floats),
        "bytes from bytes with noise": distance(
            states(weights, sound + noise, exact=False), in_bytes
        ),
        "floats from floats with noise": distance(
            states(weights, sound + noise, exact=True), in_floats
        ),
    }
    for what, share in found.items():
        print(f"  {what}: {share:.3%}")
    return found


def states(weights: Weights, sound: Samples, *, exact: bool) -> NDArray[np.float32]:
    """What the encoder makes of a whole recording."""
    keep = Encoder(weights, Graphs(None, 1), lambda made: {"states": made[None, None]}, exact=exact)
    made: NDArray[np.float32] = keep.encode([Encoded()], [sound])[0].memory["states"][0, 0]
    return made


def distance(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))
