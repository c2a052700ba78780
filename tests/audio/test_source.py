"""Real files of every kind that libsndfile writes, read back as chunks."""

import io
import os
import tempfile
import threading
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.audio.arrivals import Arrivals
from dragoman.audio.chunk import RATE
from dragoman.audio.pcm import RawFormat
from dragoman.audio.source import duration, open_audio, read_audio
from dragoman.errors import DragomanError
from tests.audio.conftest import chirp

KINDS = {
    "talk.wav": {},
    "float.wav": {"subtype": "FLOAT"},
    "law.wav": {"subtype": "ULAW"},
    "large.wav": {"format": "RF64"},
    "talk.flac": {},
    "talk.ogg": {"format": "OGG", "subtype": "VORBIS"},
    "talk.opus": {"format": "OGG", "subtype": "OPUS"},
    "talk.mp3": {"format": "MP3"},
    "talk.aiff": {},
    "talk.caf": {},
}


def joined(chunks):
    chunks = list(chunks)
    assert [c.last for c in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(c.samples.dtype == np.float32 for c in chunks)
    return np.concatenate([c.samples for c in chunks])


def likeness(a, b):
    n = min(len(a), len(b))
    return np.corrcoef(a[:n], b[:n])[0, 1]


def noise(seconds, seed):
    sound = np.random.default_rng(seed).standard_normal(round(seconds * RATE))
    return (0.1 * sound).astype(np.float32)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("rate", [16000, 48000])
def test_every_kind_of_file(recording, name, rate):
    path = recording(name, 2.0, rate, channels=2, **KINDS[name])
    samples = read_audio(path)
    assert len(samples) == 2 * RATE
    assert likeness(samples, chirp(2.0)) > 0.99
    assert duration(path) == 2.0


@pytest.mark.parametrize("name", KINDS)
def test_a_part_is_sought(recording, name):
    path = recording(name, 3.0, 24000, **KINDS[name])
    whole, part = read_audio(path), read_audio(path, 1.25, 2.5)
    assert len(part) == 1.25 * RATE
    assert np.abs(part - whole[20000:40000])[200:-200].max() < 0.02


def test_channels_are_averaged(tmp_path):
    sides = np.stack([np.full(1600, 0.5), np.full(1600, 0.25)], axis=1)
    soundfile.write(tmp_path / "a.wav", sides, RATE, "FLOAT")
    assert np.allclose(read_audio(tmp_path / "a.wav"), 0.375)


@pytest.mark.parametrize("softer", [1.0, 0.5, 0.1])
def test_two_who_speak_at_once_on_a_side_each_are_both_heard(tmp_path, softer):
    sides = np.stack([noise(2.0, 1), softer * noise(2.0, 2)], axis=1)
    soundfile.write(tmp_path / "a.wav", sides, RATE, "FLOAT")
    assert np.allclose(read_audio(tmp_path / "a.wav"), sides.mean(axis=1), atol=1e-6)


def test_channels_that_cancel_each_other_are_heard(tmp_path):
    """As where a balanced cable is plugged into a stereo input: averaged, they are silence."""
    path = tmp_path / "crossed.wav"
    sound = chirp(2.0)
    soundfile.write(path, np.stack([-0.9 * sound, sound], axis=1), RATE, "FLOAT")
    assert np.allclose(read_audio(path), sound, atol=1e-6)


def test_channels_that_cancel_each_other_are_heard_in_noise_of_their_own(tmp_path):
    """Two microphones: what is left in the mean is their noise, and no speech. Half of the time
    the speaker is as soft as the noise."""
    path, sound = tmp_path / "crossed.wav", chirp(4.0)
    sound *= np.where(np.arange(len(sound)) // (RATE // 2) % 2, 0.25, 1.0)
    sides = [sound + 0.6 * noise(4.0, 1), 0.6 * noise(4.0, 2) - sound]
    soundfile.write(path, np.stack(sides, axis=1), RATE, "FLOAT")
    samples = read_audio(path)
    assert any(np.allclose(samples, side, atol=1e-6) for side in sides)  # never upside down


@pytest.mark.parametrize(("channel", "heard"), [(1, 0.5), (2, 0.25), (None, 0.375)])
def test_one_channel_can_be_heard_alone(tmp_path, monkeypatch, channel, heard):
    path = tmp_path / "a.wav"
    sides = np.stack([np.full(1600, 0.5), np.full(1600, 0.25)], axis=1)
    soundfile.write(path, sides, RATE, "FLOAT")
    assert np.allclose(joined(open_audio(path, channel=channel)), heard)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    assert np.allclose(joined(open_audio("-", channel=channel)), heard)


@pytest.mark.parametrize(
    ("channels", "channel", "told"),
    [
        (1, 2, "has one channel; there is no channel 2"),
        (2, 3, r"has two channels, 1 \(left\) and 2 \(right\); there is no channel 3"),
        (6, 0, "has 6 channels, 1 to 6; there is no channel 0"),
    ],
)
def test_a_channel_that_is_not_there_is_told_when_the_file_is_opened(
    recording, channels, channel, told
):
    with pytest.raises(DragomanError, match=told):
        open_audio(recording(channels=channels), channel=channel)


def test_a_plain_recording_has_one_track(recording):
    path = recording()
    assert len(joined(open_audio(path, track="1"))) == 2 * RATE
    for track in ("2", "0", "de"):
        with pytest.raises(DragomanError, match=f"has 1 audio track: 1; there is no track {track}"):
            open_audio(path, track=track)


@pytest.mark.parametrize("rate", [16000, 44100])
@pytest.mark.parametrize("live", [False, True])
def test_chunks_bring_their_sound_as_it_was_recorded(recording, rate, live):
    path = recording(seconds=3.3, rate=rate, channels=2)
    chunks = list(open_audio(path, step_ms=300, original=True))
    if live:
        chunks = list(Arrivals(open_audio(path, step_ms=50, original=True), step_ms=300).chunks())
    for chunk in chunks:
        assert chunk.original.rate == rate
        assert len(chunk.original.frames) / rate == pytest.approx(chunk.seconds, abs=1 / rate)
    whole = np.concatenate([chunk.original.frames for chunk in chunks])
    assert np.array_equal(whole, soundfile.read(path, dtype="float32")[0])
    assert all(chunk.original is None for chunk in open_audio(path))


@settings(max_examples=30)
@given(
    st.integers(1, 6000),
    st.sampled_from([8000, 16000, 22050, 44100]) | st.integers(4000, 65535),
    st.floats(0.1, 500),
    st.sampled_from(["WAV", "FLAC"]),
)
def test_any_step_gives_the_same_samples(frames, rate, step_ms, kind):
    samples = np.random.default_rng(frames).uniform(-1, 1, frames)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "talk"
        soundfile.write(path, samples, rate, format=kind)
        written, _ = soundfile.read(path, dtype="float32")
        got = joined(open_audio(path, step_ms=step_ms))
    assert np.allclose(got, soxr.resample(written, rate, RATE), atol=1e-5)


@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.5])
def test_a_length_that_is_a_multiple_of_the_step(recording, seconds):
    chunks = list(open_audio(recording(seconds=seconds), step_ms=500))
    assert [c.seconds for c in chunks] == [0.5] * round(seconds / 0.5)
    assert [c.last for c in chunks] == [False] * (len(chunks) - 1) + [True]


@given(st.lists(st.floats(0.001, 1.999), min_size=1, max_size=5, unique=True))
@settings(max_examples=20)
def test_parts_that_adjoin_give_the_whole(cuts):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "talk.wav"
        soundfile.write(path, chirp(2.0), RATE, "FLOAT")
        edges = [0.0, *sorted({round(cut, 3) for cut in cuts}), None]
        parts = [read_audio(path, a, b) for a, b in pairwise(edges)]
    assert np.array_equal(np.concatenate(parts), chirp(2.0))


def test_an_end_after_the_end_is_said(recording, caplog):
    path = recording(seconds=1.0)
    assert len(read_audio(path, 0.5, 1.2)) == RATE / 2
    assert not caplog.messages
    assert len(read_audio(path, 0.5, 9.0)) == RATE / 2
    assert "ends at 1.0 s, before the 9.0 s" in caplog.text


# Odd files that are whole: nothing of them may be lost.


def test_joined_mp3s_are_heard_to_the_end(recording, tmp_path):
    one = recording("one.mp3", 1.0, format="MP3")
    both = tmp_path / "both.mp3"
    both.write_bytes(one.read_bytes() * 2)
    assert duration(both) == pytest.approx(2.0, abs=0.06)
    samples = read_audio(both)
    assert len(samples) / RATE == pytest.approx(2.0, abs=0.06)
    assert likeness(samples[:RATE], chirp(1.0)) > 0.99
    late = read_audio(both, 1.5)
    assert likeness(late, samples[RATE * 3 // 2 :]) > 0.99


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_joined_oggs_are_heard_to_the_end(recording, tmp_path, subtype, caplog):
    """As `cat` joins them, and as a recorder of web radio writes them: a stream after the other."""
    parts = [
        recording(f"{seconds}.ogg", seconds, 48000, format="OGG", subtype=subtype)
        for seconds in (1.0, 2.0, 0.5)
    ]
    whole = tmp_path / "whole.ogg"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    assert duration(whole) == 3.5
    samples = read_audio(whole)
    assert len(samples) == 3.5 * RATE
    assert likeness(samples[RATE:], chirp(2.0)[: 2 * RATE]) > 0.99
    assert likeness(samples[3 * RATE :], chirp(0.5)) > 0.99
    assert np.allclose(
        read_audio(whole, 1.5, 3.25), samples[RATE * 3 // 2 : RATE * 13 // 4], atol=0.02
    )
    assert not caplog.messages


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x80000000])
def test_a_wav_whose_recorder_was_killed(recording, size, caplog):
    path = recording(seconds=1.0)
    data = bytearray(path.read_bytes())
    assert data[36:40] == b"data"
    data[4:8] = data[40:44] = size.to_bytes(4, "little")
    path.write_bytes(data)
    assert duration(path) == 1.0
    assert len(read_audio(path)) == RATE
    assert len(read_audio(path, 0.25, 0.5)) == RATE / 4
    assert not caplog.messages


# Standard input and pipes.


@pytest.fixture
def stdin(monkeypatch):
    def put(data):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    return put


def test_raw_samples_on_standard_input(stdin):
    sides = np.stack([chirp(1.0, 48000), chirp(1.0, 48000)], axis=1)
    stdin((sides * 32767).astype("<i2").tobytes())
    got = joined(open_audio("-", step_ms=100, raw=RawFormat.parse("s16le:48000:2")))
    assert len(got) == RATE
    assert likeness(got, chirp(1.0)) > 0.99


def test_wav_on_standard_input(stdin, recording):
    stdin(recording(seconds=1.0, rate=8000).read_bytes())
    got = joined(open_audio("-", step_ms=100, start=0.25, end=0.75))
    assert len(got) == RATE / 2


def test_a_pipe_gives_a_chunk_as_soon_as_it_is_complete(stdin):
    stdin(np.zeros(RATE, "<i2").tobytes())
    chunks = list(open_audio("-", step_ms=500, raw=RawFormat()))
    assert [len(c.samples) for c in chunks] == [8000, 8000, 0]
    assert chunks[-1].last


def test_raw_samples_in_a_file(tmp_path):
    path = tmp_path / "talk.raw"
    path.write_bytes(chirp(1.0).astype("<f4").tobytes())
    raw = RawFormat("f32le")
    assert np.array_equal(read_audio(path, 0.5, raw=raw), chirp(1.0)[RATE // 2 :])


def test_a_named_pipe(recording, tmp_path):
    data = recording(seconds=1.0).read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    assert len(joined(open_audio(pipe, step_ms=100))) == RATE
    writer.join()
