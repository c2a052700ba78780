"""A recording that is damaged in its middle: it is told where, and heard on behind it."""

import io
import itertools
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dragoman.audio import sndfile
from dragoman.audio.cut import Frame
from dragoman.audio.damage import mp3_holes, ogg_holes
from dragoman.audio.ogg import Page, next_page
from dragoman.audio.source import duration, read_audio

RATE = 16000
SECONDS = 20
BAD_AT = 8.0
NOISE = np.random.default_rng(7).standard_normal(SECONDS * RATE).astype(np.float32) / 10
ROOM = 1 << 19  # for the noise, and a part of it behind that
SPECTRUM = np.fft.rfft(NOISE, ROOM)
KINDS = {
    "talk.ogg": {"format": "OGG", "subtype": "VORBIS"},
    "talk.opus": {"format": "OGG", "subtype": "OPUS"},
    "talk.mp3": {"format": "MP3"},
    "talk.flac": {"format": "FLAC"},
}
HARMS = ("overwritten", "emptied", "dropped")
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")


@cache
def bytes_of(name: str, times: int = 1) -> bytes:
    """The noise, once or several times, as such a file: to write one takes longest."""
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", RATE, 1, **KINDS[name]) as sound:
        for part in np.split(np.tile(NOISE, times), times * SECONDS):  # libvorbis takes no more
            sound.write(part)
    return file.getvalue()


@pytest.fixture
def written(tmp_path):
    def write(name: str) -> Path:
        (tmp_path / name).write_bytes(bytes_of(name))
        return tmp_path / name

    return write


def harm(path: Path, how: str, share: float = BAD_AT / SECONDS, size: int = 6000) -> None:
    data = bytearray(path.read_bytes())
    at = int(share * len(data))
    bad = {
        "overwritten": np.random.default_rng(1).integers(0, 255, size, np.uint8).tobytes(),
        "emptied": bytes(size),
        "dropped": b"",
    }[how]
    data[at : at + size] = bad
    path.write_bytes(data)


def place_of(part: np.ndarray) -> float:
    """Where in the recording a part of it is, in seconds."""
    spectra = SPECTRUM * np.conj(np.fft.rfft(part, ROOM))
    return float(np.argmax(np.fft.irfft(spectra, ROOM))) / RATE


@pytest.fixture
def without_ffmpeg(monkeypatch):
    monkeypatch.setattr(sndfile, "has_ffmpeg", lambda: False)


@pytest.mark.parametrize("name", KINDS)
def test_a_whole_recording_has_no_damage(written, name, caplog):
    assert len(read_audio(written(name))) == SECONDS * RATE
    assert caplog.messages == []


@pytest.mark.parametrize("how", HARMS)
@pytest.mark.parametrize("name", ["talk.ogg", "talk.opus", "talk.mp3"])
def test_damage_is_told_and_what_follows_is_heard(written, name, how, caplog, without_ffmpeg):
    path = written(name)
    harm(path, how)
    heard = read_audio(path)
    assert place_of(heard[-RATE - 8000 : -8000]) == pytest.approx(SECONDS - 1.5, abs=0.15)
    [told] = [told for told in caplog.messages if "is damaged at" in told]
    minutes, seconds = told.split(" damaged at ")[1].split(":")[:2]
    assert (int(minutes), int(seconds)) == (0, pytest.approx(BAD_AT, abs=2.5))
    assert ("with ffmpeg it keeps its place" in told) == (name != "talk.mp3")
    assert "what was there is left out" in told


@needs_ffmpeg
@pytest.mark.parametrize("how", HARMS)
@pytest.mark.parametrize("name", ["talk.ogg", "talk.opus", "talk.flac"])
def test_what_follows_keeps_its_place_by_silence(written, name, how, caplog):
    path = written(name)
    harm(path, how)
    heard = read_audio(path)
    assert len(heard) == SECONDS * RATE
    assert place_of(heard[:RATE]) == 0
    assert place_of(heard[15 * RATE : 16 * RATE]) == pytest.approx(15, abs=0.01)
    [told] = caplog.messages
    assert "is damaged at 0:0" in told
    assert told.endswith("silence is heard there.")
    assert duration(path) == SECONDS


@needs_ffmpeg
def test_a_part_behind_the_damage_is_sought_and_nothing_is_said(written, caplog):
    path = written("talk.ogg")
    harm(path, "overwritten")
    part = read_audio(path, 15.0, 16.0)
    assert place_of(part) == pytest.approx(15, abs=0.01)
    assert read_audio(path, 1.0, 2.0).size == RATE
    assert caplog.messages == []


LONG = 4
"""Times the noise in a recording of which most is damaged, so that the damage is far across."""


@pytest.fixture(params=["talk.ogg", "talk.opus"])
def mostly_harmed(request, tmp_path):
    """Of 80 seconds the sound between some 16 and 64 is gone, in the way that is asked for."""

    def write(how: str) -> Path:
        path = tmp_path / request.param
        path.write_bytes(bytes_of(request.param, LONG))
        harm(path, how, share=0.2, size=int(0.6 * path.stat().st_size))
        return path

    return write


@needs_ffmpeg
@pytest.mark.parametrize("how", ["overwritten", "emptied"])
def test_what_follows_far_behind_is_heard_and_told_to_come_earlier(mostly_harmed, how, caplog):
    """ffmpeg would give up, and what is heard be as short as that without a word."""
    heard = read_audio(mostly_harmed(how))
    assert place_of(heard[-RATE - 8000 : -8000]) == pytest.approx(SECONDS - 1.5, abs=0.15)
    [told] = caplog.messages
    assert told.endswith("left out, and what follows comes so much earlier.")


@needs_ffmpeg
def test_a_long_gap_is_filled_with_silence(mostly_harmed, caplog):
    heard = read_audio(mostly_harmed("dropped"))
    assert len(heard) == LONG * SECONDS * RATE
    assert not heard[40 * RATE : 41 * RATE].any()
    assert place_of(heard[-RATE:]) == pytest.approx(SECONDS - 1, abs=0.01)
    [told] = caplog.messages
    assert told.endswith("silence is heard there.")


@needs_ffmpeg
def test_a_part_far_behind_the_damage_keeps_its_place(mostly_harmed, caplog):
    part = read_audio(mostly_harmed("emptied"), 75.0, 76.0)
    assert place_of(part) == pytest.approx(15, abs=0.01)
    assert caplog.messages == []


@needs_ffmpeg
def test_where_all_pages_to_the_end_are_damaged_the_rest_is_lost(written, caplog):
    path = written("talk.ogg")
    data = bytearray(path.read_bytes())
    for at in (*range(len(data) // 2, len(data), 1000), -1):
        data[at] ^= 0x55
    path.write_bytes(data)
    assert 0 < len(read_audio(path)) < 12 * RATE
    [told] = caplog.messages
    assert told.endswith("the rest is lost.")


@needs_ffmpeg
def test_a_part_may_begin_within_the_damage(written):
    path = written("talk.flac")
    harm(path, "emptied", size=40_000)
    for start in np.arange(7, 11, 0.25):
        assert place_of(read_audio(path, start, start + 4)[-RATE:]) == pytest.approx(start + 3)


def test_a_part_of_a_damaged_mp3(written, caplog):
    path = written("talk.mp3")
    harm(path, "emptied")
    whole, part = read_audio(path), read_audio(path, 10.0, 11.0)
    assert np.abs(part - whole[10 * RATE : 11 * RATE])[200:-200].max() < 0.02


NOTHING = {
    "zeros": bytes(200_000),
    "erased flash": b"\xff" * 200_000,
    "noise": np.random.default_rng(1).bytes(200_000),
}


@pytest.mark.parametrize("junk", NOTHING.values(), ids=NOTHING)
def test_the_length_of_a_damaged_mp3(written, junk):
    path = written("talk.mp3")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + junk + data[len(data) // 2 :])
    heard = len(read_audio(path)) / RATE
    assert heard == pytest.approx(SECONDS, abs=0.3)
    assert duration(path) == pytest.approx(heard, abs=0.01)


def test_an_mp3_that_does_not_tell_its_length_is_heard_to_its_last_frame(written):
    """libsndfile guesses it, and what follows its guess may be less than half a second."""
    path = written("talk.mp3")
    data = path.read_bytes()
    path.write_bytes(data[Frame.read(data[:4]).size :])
    assert place_of(read_audio(path)[-RATE // 4 :]) == pytest.approx(SECONDS - 0.25, abs=0.1)


def test_the_rest_of_a_flac_is_lost_without_ffmpeg(written, caplog, without_ffmpeg):
    path = written("talk.flac")
    harm(path, "overwritten")
    assert len(read_audio(path)) / RATE == pytest.approx(BAD_AT, abs=1)
    [told] = caplog.messages
    assert "is damaged at 0:0" in told
    assert told.endswith("the rest is lost; with ffmpeg installed more of it may be heard.")


def test_an_mp3_that_lacks_bytes_in_its_middle_has_its_end(written, caplog):
    """Its first frame counts them."""
    path = written("talk.mp3")
    assert b"Info" in path.read_bytes()[:256] or b"Xing" in path.read_bytes()[:256]
    harm(path, "dropped")
    read_audio(path)
    [told] = caplog.messages
    assert told.endswith("what was there is left out.")
    path.write_bytes(path.read_bytes()[:-500])
    caplog.clear()
    read_audio(path)
    assert [told.endswith("its end is missing.") for told in caplog.messages] == [True, False]


@needs_ffmpeg
@pytest.mark.parametrize("how", HARMS)
def test_a_flac_with_a_short_hole_has_its_end(tmp_path, how, caplog):
    """One block is less than ffmpeg fills with silence."""
    path = tmp_path / "talk.flac"
    sound = np.repeat(NOISE[: 10 * RATE], 3)
    convert = ["ffmpeg", "-v", "error", "-f", "f32le", "-ar", "48000", "-i", "-", str(path)]
    subprocess.run(convert, input=sound.tobytes(), check=True)
    harm(path, how, size=1000)
    assert len(read_audio(path)) / RATE == pytest.approx(10, abs=0.25)
    [told] = caplog.messages
    assert told.endswith("silence is heard there.")


@needs_ffmpeg
def test_a_flac_that_is_damaged_and_cut(written, caplog):
    path = written("talk.flac")
    harm(path, "emptied")
    data = path.read_bytes()
    path.write_bytes(data[: int(0.8 * len(data))])
    assert len(read_audio(path)) / RATE == pytest.approx(16, abs=0.5)
    damaged, cut = caplog.messages
    assert damaged.endswith("silence is heard there.")
    assert cut.endswith("seems to be cut short: its end is missing.")
    caplog.clear()
    assert len(read_audio(path, 10.0, 12.0)) == 2 * RATE
    assert caplog.messages == []


@pytest.mark.parametrize("intact", [1, 2, 3, 5])
def test_an_mp3_that_is_damaged_at_its_beginning(written, intact, caplog):
    """What stands before the damage may be too little for a decoder."""
    path = written("talk.mp3")
    data = path.read_bytes()
    at = sum(frame.size for frame in itertools.islice(mp3_frames(data), intact))
    size = Frame.read(data[at : at + 4]).size
    path.write_bytes(data[:at] + b"\0" * size + data[at + size :])
    heard = read_audio(path)
    assert place_of(heard[RATE : 2 * RATE]) == pytest.approx(1, abs=0.5)
    assert duration(path) == pytest.approx(len(heard) / RATE)


def test_the_rest_of_an_mp3_is_lost_whether_there_is_ffmpeg_or_not(written, caplog, monkeypatch):
    path = written("talk.mp3")
    data = path.read_bytes()
    path.write_bytes(data[: int(0.8 * len(data))] + bytes(len(data) // 5))
    for ffmpeg in (True, False):
        monkeypatch.setattr(sndfile, "has_ffmpeg", lambda ffmpeg=ffmpeg: ffmpeg)
        caplog.clear()
        assert len(read_audio(path)) / RATE == pytest.approx(16, abs=2)
        assert caplog.messages[-1].endswith(": the rest is lost.")


def mp3_frames(data: bytes):
    at = 0
    while frame := Frame.read(data[at : at + 4]):
        yield frame
        at += frame.size


def test_many_places_are_counted(written, caplog):
    path = written("talk.mp3")
    for number in range(8):
        harm(path, "emptied", share=0.1 + number / 10, size=1000)
    read_audio(path)
    [told] = caplog.messages
    assert "is damaged at 0:01, 0:03, 0:0" in told
    assert told.count(":") == 6  # five places, and what becomes of them
    assert "and 3 more places: " in told


def test_tags_between_joined_mp3s_are_no_damage(written, tmp_path, caplog):
    one = written("talk.mp3").read_bytes()
    between = [b"TAG" + b"\xff\xfb\x90\x00" * 31 + b"!", b"ID3\4\0\0\0\0\1\0" + b"\xff" * 128, b""]
    both = tmp_path / "both.mp3"
    for tag in between:
        both.write_bytes(one + tag + one)
        assert mp3_holes(both) == ()


def test_two_places_in_an_mp3(written):
    path = written("talk.mp3")
    frames, at, data = [], 0, bytearray(path.read_bytes())
    while frame := Frame.read(data[at : at + 4]):
        frames.append((at, frame.size))
        at += frame.size
    for number in (100, 300):
        begin, size = frames[number]
        data[begin : begin + size] = bytes(size)
    path.write_bytes(data)
    assert [(hole.start, hole.end) for hole in mp3_holes(path)] == [
        (at, at + size) for at, size in (frames[100], frames[300])
    ]
    assert [hole.at_s for hole in mp3_holes(path)] == [
        pytest.approx(100 * 576 / RATE),
        pytest.approx(299 * 576 / RATE),
    ]


@pytest.mark.parametrize("name", ["talk.ogg", "talk.opus"])
def test_each_page_of_an_ogg_is_missed(written, name):
    """Whichever page is hit, or left out; of the last, which is then cut off, others tell."""
    path = written(name)
    data = path.read_bytes()
    pages = list(all_pages(data))
    rate = 48000 if name == "talk.opus" else RATE
    assert len(pages) > 6
    for number, page in enumerate(pages[3:], 3):
        before = max(0, pages[number - 1].granule) / rate
        changed = bytearray(data)
        changed[page.end - 1] ^= 1
        path.write_bytes(changed)
        [hole] = ogg_holes(path, RATE)
        assert (hole.start, hole.end) == (page.start, page.end)
        assert hole.at_s == pytest.approx(before)
        path.write_bytes(data[: page.start] + data[page.end :])
        missing = ogg_holes(path, RATE)
        assert [hole.at_s for hole in missing] == [pytest.approx(before)] * (page is not pages[-1])


def all_pages(data: bytes):
    file, at = io.BytesIO(data), 0
    while page := next_page(file, at):
        yield page
        at = page.end


def test_a_recorder_of_web_radio_came_later(written):
    """Its first sound is at the hour that the station counts."""
    path = written("talk.ogg")
    data = path.read_bytes()
    file, late = io.BytesIO(), 36_000 * RATE
    for page in all_pages(data):
        whole = bytearray(data[page.start : page.end])
        if page.granule > 0:
            whole[6:14] = (page.granule + late).to_bytes(8, "little")
        file.write(with_checksum(whole))
    shifted = bytearray(file.getvalue())
    shifted[int(0.5 * len(shifted))] ^= 1
    path.write_bytes(shifted)
    [hole] = ogg_holes(path, RATE)
    assert 5 < hole.at_s < 12


def with_checksum(page: bytearray) -> bytes:
    """By the definition, bit by bit."""
    page[22:26] = bytes(4)
    checksum = 0
    for byte in page:
        checksum ^= byte << 24
        for _ in range(8):
            checksum = (checksum << 1 & 0xFFFFFFFF) ^ (0x04C11DB7 if checksum >> 31 else 0)
    page[22:26] = checksum.to_bytes(4, "little")
    return bytes(page)


def test_a_page_is_looked_for_across_stretches(written):
    data = written("talk.ogg").read_bytes()
    first = Page.read(io.BytesIO(data), 0)
    for before in (1, (1 << 16) - 2, 1 << 16, 200_000):
        found = next_page(io.BytesIO(b"O" * before + data), 0)
        assert (found.start, found.body) == (before, first.body)
    assert next_page(io.BytesIO(b"OggS" * 40_000), 0) is None


def test_a_library_does_not_talk_into_the_terminal(written):
    """A half downloaded mp3, and one that is damaged: libmpg123 has an opinion on both."""
    cut, bad = written("talk.mp3"), written("talk.mp3").with_name("bad.mp3")
    bad.write_bytes(cut.read_bytes())
    harm(bad, "overwritten", size=2000)
    cut.write_bytes(cut.read_bytes()[:-20_000])
    code = (
        "import sys, ctypes; from dragoman.audio.source import read_audio\n"
        "for path in sys.argv[1:]: read_audio(path)\n"
        "library = ctypes.CDLL(None); stream = ctypes.c_void_p.in_dll(library, 'stderr')\n"
        "library.fputs(b'afterwards', stream)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, cut, bad], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    *told, afterwards = done.stderr.splitlines()
    assert [line for line in told if "talk.mp3" not in line and "bad.mp3" not in line] == []
    assert afterwards == "afterwards"
