"""Whatever is wrong with a recording is said in a sentence."""

import io
import os
import shutil
import struct
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from dragoman.audio.source import duration, open_audio, read_audio
from dragoman.errors import DragomanError


def refuses(path, match, **how):
    with pytest.raises(DragomanError, match=match):
        open_audio(path, **how)


def test_no_file(tmp_path):
    refuses(tmp_path / "no.wav", "There is no file")
    with pytest.raises(DragomanError, match="There is no file"):
        duration(tmp_path / "no.wav")


def test_a_folder(tmp_path):
    refuses(tmp_path, "is a folder")


def test_an_empty_file(tmp_path):
    (tmp_path / "a.wav").touch()
    refuses(tmp_path / "a.wav", "is empty")


def test_a_file_that_may_not_be_read(recording):
    path = recording()
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    refuses(path, "cannot be read: Permission denied")


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b.wav"])
def test_names_that_no_file_has(tmp_path, name):
    refuses(tmp_path / name, "cannot be read")


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.mp3", "a.m4a", "a"])
def test_a_file_that_is_no_recording(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(bytes(range(1, 256)) * 400)
    refuses(path, "is not a recording")
    with pytest.raises(DragomanError, match="is not a recording"):
        duration(path)


@pytest.mark.parametrize("name", ["a.raw", "a.PCM", "a.s16le", "a"])
def test_plain_samples_may_be_meant(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(bytes(range(1, 256)) * 400)
    refuses(path, "if it is plain samples, say how to read them: --raw s16le:16000:1")
    refuses_without(path.rename(tmp_path / "a.mp3"), "--raw")


@pytest.mark.parametrize("begin", [b"\xff\xff\0\0", b"\xff\xfe\1\0", b"\0\0\1\0"])
def test_plain_samples_are_no_mp3_in_which_noise_is_heard(tmp_path, begin):
    """Soft ones begin as frames do; libsndfile finds others on the way, and goes on."""
    noise = np.random.default_rng(1).normal(0, 3000, 16000 * 20).astype("<i2")
    path = tmp_path / "a.raw"
    path.write_bytes(50 * begin + noise.tobytes())
    refuses(path, "if it is plain samples, say how to read them: --raw s16le:16000:1")


def refuses_without(path, word):
    with pytest.raises(DragomanError) as told:
        open_audio(path)
    assert word not in str(told.value)


def test_a_recording_without_a_sample(tmp_path):
    for name in ("a.wav", "a.aiff"):
        soundfile.write(tmp_path / name, np.zeros(0), 16000)
        refuses(tmp_path / name, "holds no sound")
        with pytest.raises(DragomanError, match="holds no sound"):
            duration(tmp_path / name)


def test_a_wav_that_is_cut_is_read_and_said(recording, caplog):
    path = recording(seconds=2.0)
    path.write_bytes(path.read_bytes()[: 44 + 32000])
    assert len(read_audio(path)) == 16000
    assert "cut short: its header speaks of 2 s, but it holds 1 s" in caplog.text
    assert duration(path) == 1.0


@pytest.mark.parametrize("size", [13, 20, 30, 40, 44])
def test_a_wav_that_is_cut_in_its_header(recording, size, caplog):
    path = recording()
    path.write_bytes(path.read_bytes()[:size])
    refuses(path, r"talk\.wav (is a wav|holds no sound)")
    assert "cut short" not in caplog.text  # nothing of it is read


def test_a_flac_that_is_cut_is_read_and_said(recording, caplog, monkeypatch):
    monkeypatch.setattr("dragoman.audio.sndfile.has_ffmpeg", lambda: False)
    path = recording("talk.flac", seconds=4.0)
    whole = read_audio(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 4])
    part = read_audio(path)
    assert 2.0 < len(part) / 16000 < 4.0
    assert np.array_equal(part, whole[: len(part)])
    assert "the rest is lost" in caplog.text


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_ffmpeg_tells_that_a_flac_is_cut_and_not_damaged(recording, caplog):
    path = recording("talk.flac", seconds=4.0)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 4])
    assert 2.0 < len(read_audio(path)) / 16000 < 4.0
    assert caplog.messages == [f"{path} seems to be cut short: its end is missing."]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("channels", [1, 2])
def test_samples_that_are_no_numbers(tmp_path, value, channels):
    samples = np.zeros((32000, channels), np.float32)
    samples[20000, -1] = value
    path = tmp_path / "a.wav"
    soundfile.write(path, samples, 16000, "FLOAT")
    with pytest.raises(DragomanError, match=r"a\.wav holds a sample that is no sound .* 1\.250 s"):
        read_audio(path)
    with pytest.raises(DragomanError, match=r"at 1\.250 s"):
        read_audio(path, start=1.0)
    assert len(read_audio(path, end=1.25)) == 20000


@pytest.mark.parametrize(
    ("place", "format", "value", "match"),
    [
        (24, "<I", 0, "says it has 0 samples a second"),
        (24, "<I", 2**32 - 1, "says it has 4294967295 samples a second"),
        (22, "<H", 0, "0 channels"),
    ],
)
def test_a_header_with_nonsense(recording, place, format, value, match):
    path = recording()
    data = bytearray(path.read_bytes())
    struct.pack_into(format, data, place, value)
    path.write_bytes(data)
    refuses(path, match)


@pytest.mark.parametrize("name", ["talk.wav", "talk.flac", "talk.ogg", "talk.mp3"])
def test_a_start_after_the_end(recording, name):
    refuses(recording(name, seconds=2.0), "has ended before 7.5 s", start=7.5)


@pytest.mark.parametrize(("start", "end"), [(-1, None), (float("nan"), None), (2, 1), (1, 1)])
def test_parts_that_are_none(recording, start, end):
    refuses(recording(), "Audio cannot (start|end) at", start=start, end=end)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "Standard input holds no sound"),
        (b"RIFF\0\0\0\0WAVE", "Standard input is a wav that ends before its first sample"),
        (b"RIFF\0\0\0\0WAVEdata\1\0\0\0", "without a format"),
    ],
)
def test_standard_input_that_is_no_recording(monkeypatch, data, match):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    with pytest.raises(DragomanError, match=match):
        next(open_audio("-"))
