import io

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from dragoman.audio.pcm import ENCODINGS, RawFormat, pcm_frames, read_wav_header
from dragoman.errors import DragomanError

SUBTYPES = {
    "u8": "PCM_U8",
    "s16le": "PCM_16",
    "s24le": "PCM_24",
    "s32le": "PCM_32",
    "f32le": "FLOAT",
    "f64le": "DOUBLE",
}


class Trickle(io.BytesIO):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, data, sizes):
        super().__init__(data)
        self.sizes = list(sizes)

    def read1(self, size=-1):
        most = self.sizes.pop(0) if self.sizes else 1000
        return super().read1(most if size < 0 else min(size, most))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_wav_in_a_stream_equals_what_libsndfile_reads(encoding, channels):
    samples = np.random.default_rng(7).uniform(-0.9, 0.9, (501, channels))
    file = io.BytesIO()
    soundfile.write(file, samples, 22050, SUBTYPES[encoding], format="WAV")
    expected, _ = soundfile.read(io.BytesIO(file.getvalue()), dtype="float32", always_2d=True)

    stream = io.BytesIO(file.getvalue())
    header = read_wav_header(stream, "talk.wav")
    assert header.format == RawFormat(encoding, 22050, channels)
    got = np.concatenate(list(pcm_frames(stream, header.format, header.data_bytes)))
    assert np.array_equal(got, expected)


@given(st.lists(st.integers(1, 9)), st.integers(1, 3), st.integers(0, 50), st.integers(0, 5))
def test_frames_survive_any_cutting_of_the_bytes(sizes, channels, count, half):
    numbers = np.arange(count * channels, dtype="<i2")
    data = numbers.tobytes() + b"x" * min(half, 2 * channels - 1)
    blocks = list(pcm_frames(Trickle(data, sizes), RawFormat("s16le", 16000, channels)))
    got = np.concatenate([*blocks, np.zeros((0, channels), np.float32)])
    assert np.array_equal(got * 2**15, numbers.reshape(-1, channels))


def test_a_stream_gives_what_has_arrived():
    stream = Trickle(np.zeros(100, "<i2").tobytes(), [20, 30])
    sizes = [len(block) for block in pcm_frames(stream, RawFormat())]
    assert sizes == [10, 15, 75]


def test_raw_formats_are_parsed():
    assert RawFormat.parse("s16le") == RawFormat("s16le", 16000, 1)
    assert RawFormat.parse("f32le:44100:2") == RawFormat("f32le", 44100, 2)


@pytest.mark.parametrize("text", ["mp3", "s16le:0", "s16le:16000:0", "s16le:1:2:3", "s16le:x", ""])
def test_raw_formats_that_are_none(text):
    with pytest.raises(DragomanError):
        RawFormat.parse(text)
