"""A real model, really fetched through the configured package index."""

import os

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.store import get, shelf

OUTSIDE = {name: value for name, value in os.environ.items() if name.lower().startswith("pip_")}


@pytest.mark.weights
def test_silero_vad(monkeypatch):
    """Fetched into an empty store, it verifies, runs, and hears no speech in silence."""
    import onnxruntime

    for name in ("PIP_NO_INDEX", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name)
    for name, value in OUTSIDE.items():
        monkeypatch.setenv(name, value)
    try:
        folder = get("silero-vad")
    except DragomanError as error:
        pytest.skip(str(error))
    assert [path.name for path in folder.iterdir()] == ["silero_vad_16k_sequence.onnx"]
    assert shelf.verify("silero-vad") == []
    session = onnxruntime.InferenceSession(folder / "silero_vad_16k_sequence.onnx")
    memory = np.zeros((1, 1, 128), np.float32)
    silence = np.zeros((20, 576), np.float32)
    chances, _, _ = session.run(None, {"input": silence, "h": memory, "c": memory})
    assert chances.shape == (20,)
    assert chances.max() < 0.1
