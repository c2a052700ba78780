"""Voice activity for many speakers at once hears what it hears of each."""

import numpy as np
import pytest

from dragoman.audio.ear import Ear, listen, prepare
from dragoman.audio.vad import MODEL_FILE, Vad
from dragoman.errors import DragomanError
from dragoman.store import get

pytest.importorskip("torch")

from dragoman.audio.vad_gpu import GpuVad


@pytest.mark.weights
def test_speakers_together_are_as_each_alone():
    try:
        path = get("silero-vad") / MODEL_FILE
    except DragomanError as error:
        pytest.skip(str(error))
    random = np.random.default_rng(0)
    vads = Vad(path), GpuVad(path, "cpu")
    streams = [[vad.stream() for _ in range(3)] for vad in vads]
    ears = [Ear(vads[1].stream()) for _ in range(3)]
    alone = [Ear(vads[0].stream()) for _ in range(3)]
    for length in (300, 16_000, 16_000, 8_000):
        # As many windows for some, fewer for another; a hum that the network takes for speech
        # here and there.
        sounds = [
            (0.1 * np.sin(np.arange(length + 700 * number) / (5 + number))
             + 0.02 * random.standard_normal(length + 700 * number)).astype(np.float32)
            for number in range(3)
        ]  # fmt: skip
        told = [
            vad.hear(group, [one.windows(sound) for one, sound in zip(group, sounds, strict=True)])
            for vad, group in zip(vads, streams, strict=True)
        ]
        for expected, found in zip(*told, strict=True):
            assert len(expected) == len(found)
            np.testing.assert_allclose(found, expected, atol=1e-4)
        together = listen([prepare(ear, sound) for ear, sound in zip(ears, sounds, strict=True)])
        assert together == [ear.hear(sound) for ear, sound in zip(alone, sounds, strict=True)]


def test_what_is_no_model_is_a_sentence(tmp_path):
    path = tmp_path / "none.onnx"
    with pytest.raises(DragomanError, match="is not a voice activity model"):
        GpuVad(path, "cpu")
