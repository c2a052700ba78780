"""The sound of telephones."""

import io

import pytest
import soundfile

from dragoman.audio.g711 import TABLES


@pytest.mark.parametrize("name", ["mulaw", "alaw"])
def test_every_byte_of_a_telephone_stands_for_what_others_take_it_for(name):
    kind = {"mulaw": "ULAW", "alaw": "ALAW"}[name]
    every = io.BytesIO(bytes(range(256)))
    known, _ = soundfile.read(every, dtype="int16", samplerate=8000, channels=1, subtype=kind,
                              format="RAW")  # fmt: skip
    assert TABLES[name].tolist() == known.tolist()
