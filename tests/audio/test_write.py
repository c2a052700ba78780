import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.audio.chunk import RATE
from dragoman.audio.source import read_audio
from dragoman.audio.write import StereoMix, WavWriter, write_wav
from dragoman.errors import DragomanError
from tests.audio.conftest import chirp

STEP = 1 / 2**15


def test_a_clip_comes_back(tmp_path):
    path = tmp_path / "a.wav"
    write_wav(path, chirp(1.0))
    assert np.abs(read_audio(path) - chirp(1.0)).max() <= STEP
    assert os.listdir(tmp_path) == ["a.wav"]


def test_two_channels_and_another_rate(tmp_path):
    write_wav(tmp_path / "a.wav", chirp(0.5, 24000, 2), 24000)
    samples, rate = soundfile.read(tmp_path / "a.wav")
    assert (samples.shape, rate) == ((12000, 2), 24000)


def test_beyond_full_scale_is_clipped(tmp_path):
    write_wav(tmp_path / "a.wav", np.array([2.0, -3.0, 0.5], np.float32))
    assert np.allclose(read_audio(tmp_path / "a.wav"), [1, -1, 0.5], atol=STEP)


def test_block_by_block_and_nothing_there_before_the_end(tmp_path):
    path = tmp_path / "a.wav"
    with WavWriter(path) as writer:
        for block in np.array_split(chirp(1.0), 7):
            writer.write(block)
            assert not path.exists()
    assert np.abs(read_audio(path) - chirp(1.0)).max() <= STEP


def test_after_an_error_the_old_file_is_untouched(tmp_path):
    path = tmp_path / "a.wav"
    write_wav(path, chirp(1.0))
    before = path.read_bytes()

    def fail():
        with WavWriter(path) as writer:
            writer.write(chirp(0.1))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.wav"]


def test_closing_keeps_what_there_is(tmp_path):
    writer = WavWriter(tmp_path / "a.wav")
    writer.write(chirp(0.25))
    writer.close()
    writer.close()
    assert len(read_audio(tmp_path / "a.wav")) == RATE / 4
    with pytest.raises(DragomanError, match="already closed"):
        writer.write(chirp(0.1))


def test_places_where_nothing_can_be_written(tmp_path):
    with pytest.raises(DragomanError, match="is a folder"):
        write_wav(tmp_path, chirp(0.1))
    with pytest.raises(DragomanError, match="cannot be written: No such file or directory"):
        write_wav(tmp_path / "no" / "a.wav", chirp(0.1))
    (tmp_path / "file").touch()
    with pytest.raises(DragomanError, match="cannot be written: Not a directory"):
        write_wav(tmp_path / "file" / "a.wav", chirp(0.1))


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4000), st.integers(1, 5000)), max_size=5),
)
def test_a_mix_has_the_speaker_left_and_each_piece_at_its_moment_right(blocks, pieces):
    """The whole is computed at once, the mix block by block."""
    source = np.random.default_rng(0).uniform(-0.5, 0.5, sum(blocks)).astype(np.float32)
    right = np.zeros(sum(blocks) + 10000, np.float32)
    end, now = sum(blocks), 0
    path = Path(tempfile.mkstemp(suffix=".wav")[1])
    with StereoMix(path) as mix:
        for index, size in enumerate(blocks):
            mix.hear(source[now : now + size])
            now += size
            for _, later, length in (piece for piece in pieces if piece[0] == index):
                mix.say((now + later) / RATE, np.full(length, 0.1, np.float32))
                right[now + later : now + later + length] += 0.1
                end = max(end, now + later + length)
    mixed, rate = soundfile.read(path, dtype="float32")
    path.unlink()
    assert rate == RATE
    assert mixed.shape == (end, 2)
    assert np.allclose(mixed[: len(source), 0], source, atol=2 * STEP)
    assert not mixed[len(source) :, 0].any()
    assert np.allclose(mixed[:, 1], right[:end], atol=2 * STEP)


def test_a_moment_that_has_passed_becomes_now(tmp_path):
    with StereoMix(tmp_path / "a.wav") as mix:
        mix.hear(np.zeros(RATE, np.float32))
        mix.say(0.25, np.full(100, 0.5, np.float32))
    mixed, _ = soundfile.read(tmp_path / "a.wav")
    assert np.flatnonzero(mixed[:, 1])[0] == RATE
