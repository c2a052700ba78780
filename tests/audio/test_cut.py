"""Half an ogg or mp3 is noticed, a whole one never."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.audio.cut import Frame, after_tag, is_cut
from dragoman.audio.source import duration, read_audio

NOISE = np.random.default_rng(7).standard_normal(3 * 48000).astype(np.float32) / 10
RATES = (8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000)
OGG = {"talk.ogg": "VORBIS", "talk.opus": "OPUS"}


def written(folder: Path, name: str, rate: int = 16000) -> Path:
    path = folder / name
    kind = {"format": "OGG", "subtype": OGG[name]} if name in OGG else {}
    soundfile.write(path, NOISE[: 2 * rate], rate, **kind)
    return path


def without_length(data: bytes) -> bytes:
    """An mp3 as streams have it: without the first frame, which tells the length."""
    assert data[:64].count(b"Xing") == 1
    return data[Frame.read(data[:4]).size :]


@pytest.mark.parametrize("rate", RATES)
def test_frames_follow_each_other_to_the_end(tmp_path, rate):
    """An independent count: 576 or 1152 samples a frame."""
    data = written(tmp_path, "talk.mp3", rate).read_bytes()
    at = frames = 0
    while frame := Frame.read(data[at : at + 4]):
        assert frame.hertz == rate
        at, frames = at + frame.size, frames + 1
    assert at == len(data)
    samples = 1152 if rate >= 32000 else 576
    assert abs(frames * samples - 2 * rate) <= 5 * samples


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("tags", [b"", b"TAG" + b" " * 125])
def test_a_whole_mp3_is_whole(tmp_path, rate, told, tags):
    path = written(tmp_path, "talk.mp3", rate)
    data = path.read_bytes()
    path.write_bytes((data if told else without_length(data)) + tags)
    assert not is_cut(path)


def test_the_length_of_a_tag_has_seven_bits_a_byte():
    assert (
        after_tag(io.BytesIO(b"ID3\4\0\0\1\2\3\5and more"))
        == 10 + (1 << 21) + (2 << 14) + (3 << 7) + 5
    )
    assert after_tag(io.BytesIO(b"ID3\4\0\0\0\0\0")) == 0  # not a whole one
    assert after_tag(io.BytesIO(b"\xff\xfb\0\0\0\0\0\0\0\x7f")) == 0


def test_tags_before_and_after(tmp_path):
    path = written(tmp_path, "talk.mp3")
    data = path.read_bytes()
    before = b"ID3\x04\x00\x00" + bytes([0, 0, 2, 1]) + b"\xff\xfb" * 128 + b"x"  # 257 bytes
    ape = b"x" * 68 + b"APETAGEX" + (2000).to_bytes(4, "little") + (100).to_bytes(4, "little")
    ape += b"\0" * 16
    for sound in (data, without_length(data)):
        path.write_bytes(before + sound + ape)
        assert not is_cut(path)
        path.write_bytes(before + sound[:-10])
        assert is_cut(path)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0.3, 0.999), rate=st.sampled_from(RATES), told=st.booleans())
def test_a_cut_mp3_is_noticed_unless_between_frames(tmp_path, share, rate, told):
    path = written(tmp_path, "talk.mp3", rate)
    data = path.read_bytes() if told else without_length(path.read_bytes())
    size = int(len(data) * share)
    path.write_bytes(data[:size])
    ends, at = set(), 0
    while frame := Frame.read(data[at : at + 4]):
        at += frame.size
        ends.add(at)
    assert is_cut(path) == (told or size not in ends)


@pytest.mark.parametrize("rate", RATES)
def test_between_frames_only_the_length_that_was_told_shows_the_cut(tmp_path, rate):
    path = written(tmp_path, "talk.mp3", rate)
    data = path.read_bytes()
    last = Frame.read(data[:4]).size
    while frame := Frame.read(data[last : last + 4]):
        if last + frame.size == len(data):
            break
        last += frame.size
    path.write_bytes(data[:last])
    assert is_cut(path)
    path.write_bytes(without_length(data[:last]))
    assert not is_cut(path)


@pytest.mark.parametrize("name", OGG)
def test_a_whole_ogg_is_whole_and_every_cut_is_noticed(tmp_path, name):
    path = written(tmp_path, name)
    data = path.read_bytes()
    assert not is_cut(path)
    for size in [*range(4, 200), *range(200, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:size])
        assert is_cut(path), size


@pytest.mark.parametrize("name", ["talk.mp3", *OGG])
def test_half_a_recording_is_read_and_said(tmp_path, caplog, name):
    path = written(tmp_path, name)
    read_audio(path)
    assert caplog.text == ""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    heard = len(read_audio(path)) / 16000
    assert 0.3 < heard < 1.8
    assert "talk" in caplog.text
    assert "seems to be cut short: its end is missing" in caplog.text
    assert duration(path) == pytest.approx(heard, abs=0.02)


@pytest.mark.parametrize("name", ["talk.wav", "talk.flac"])
def test_other_recordings_are_none_of_its_business(tmp_path, name):
    path = written(tmp_path, name)
    path.write_bytes(path.read_bytes()[:1000])
    assert not is_cut(path)


@given(st.binary(max_size=400))
def test_anything_can_be_asked(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "anything"
    for start in (b"", b"OggS", b"ID3", b"\xff\xfb\x90\x00"):
        path.write_bytes(start + data)
        assert is_cut(path) in (True, False)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "fffb90",
        "00fb9000",
        "ff1b9000",
        "fffd9000",
        "ffeb9000",
        "fffbf000",
        "fffb9c00",
        "fffb0000",
    ],
)
def test_what_begins_no_frame(header):
    assert Frame.read(bytes.fromhex(header)) is None


def test_what_begins_a_frame():
    """144 · 128 kbit/s / 44.1 kHz, and one byte of padding."""
    assert Frame.read(bytes.fromhex("fffb9000")) == Frame(3, 44100, 417)
    assert Frame.read(bytes.fromhex("fffb9200")) == Frame(3, 44100, 418)
