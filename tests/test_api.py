"""The Python interface of the README."""

import numpy as np
import soundfile

import dragoman


def test_three_lines_of_python(tmp_path):
    soundfile.write(tmp_path / "talk.wav", np.zeros(80000, np.float32), 16000)
    words = []
    for update in dragoman.translate(
        tmp_path / "talk.wav", source="de", model="tests.scripted:steady", policy="greedy"
    ):
        words += update.said
    assert words == [f" word{i}" for i in range(12)]
