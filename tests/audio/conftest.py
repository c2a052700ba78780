"""Sound that tests make for themselves."""

import numpy as np
import pytest
import soundfile


def chirp(seconds: float, rate: int = 16000, channels: int = 1) -> np.ndarray:
    """A tone that rises from 200 to 2000 Hz: no two moments of it are alike."""
    t = np.arange(round(seconds * rate)) / rate
    tone = 0.5 * np.sin(2 * np.pi * (200 * t + 900 * t**2 / max(seconds, 1e-9)))
    gains = np.linspace(1, 0.5, channels)
    return (tone[:, None] * gains).astype(np.float32).squeeze()


@pytest.fixture
def recording(tmp_path):
    """Writes a chirp to a file of the wanted kind and gives its path."""

    def write(name="talk.wav", seconds=2.0, rate=16000, channels=1, **how):
        path = tmp_path / name
        soundfile.write(path, chirp(seconds, rate, channels), rate, **how)
        return path

    return write
