"""What libsndfile cannot read, read for real where ffmpeg is installed."""

import io
import re
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from dragoman.audio import ffmpeg, spooled
from dragoman.audio.chunk import RATE
from dragoman.audio.decoded import Span
from dragoman.audio.source import duration, open_audio, read_audio
from dragoman.audio.tracks import Contents, Track
from dragoman.errors import DragomanError
from tests.audio.conftest import chirp
from tests.audio.test_source import joined, likeness

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")

KINDS = {
    "talk.m4a": ["-c:a", "aac"],
    "talk.mp4": ["-c:a", "aac"],
    "talk.aac": ["-c:a", "aac"],
    "talk.webm": ["-c:a", "libopus"],
    "talk.mkv": ["-c:a", "flac"],
    "talk.wma": ["-c:a", "wmav2"],
}


def convert(source, target, *how):
    command = ["ffmpeg", "-v", "error", "-y", "-i", source, *how, target]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return target


def shift(part, whole):
    """By how many seconds a part has to be moved to lie on the whole, as its middle tells."""
    middle, around = part[4000:12000], whole[2000:14000]
    energy = np.convolve(around**2, np.ones(len(middle)), "valid")
    likenesses = np.correlate(around, middle, "valid") / np.sqrt(energy * (middle**2).sum())
    assert likenesses.max() > 0.97
    return (int(likenesses.argmax()) - 2000) / RATE


@needs_ffmpeg
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_file(recording, tmp_path, name):
    path = convert(recording(seconds=3.0, rate=44100, channels=2), tmp_path / name, *KINDS[name])
    samples = joined(open_audio(path, step_ms=300))
    assert len(samples) / RATE == pytest.approx(3.0, abs=0.2)
    assert duration(path) == pytest.approx(3.0, abs=0.2)
    part = read_audio(path, 1.0, 2.0)
    assert len(part) == RATE
    assert abs(shift(part, samples[RATE:])) < (0.1 if name == "talk.wma" else 0.01)


@needs_ffmpeg
def test_the_sound_itself(recording, tmp_path):
    path = convert(recording(rate=48000), tmp_path / "talk.mkv", "-c:a", "flac")
    assert likeness(read_audio(path), chirp(2.0)) > 0.9999


@needs_ffmpeg
def test_a_flac_that_does_not_know_its_length(recording, tmp_path, caplog):
    path = tmp_path / "piped.flac"
    with path.open("wb") as file:
        command = ["ffmpeg", "-v", "error", "-i", recording(), "-f", "flac", "pipe:1"]
        subprocess.run(command, check=True, stdout=file, stdin=subprocess.DEVNULL)
    assert duration(path) == 2.0
    assert np.array_equal(read_audio(path), read_audio(recording()))
    assert not caplog.messages
    with pytest.raises(DragomanError, match="has ended before 9 s"):
        read_audio(path, start=9)


@needs_ffmpeg
def test_an_mp3_that_guesses_its_length_too_short(recording, tmp_path):
    loud = recording(seconds=20.0)
    quieter = ["-af", "volume=enable='gt(t,5)':volume=0.0001", "-q:a", "5", "-write_xing", "0"]
    path = convert(loud, tmp_path / "talk.mp3", *quieter)
    assert len(read_audio(path)) / RATE == pytest.approx(20.0, abs=0.5)


@needs_ffmpeg
@pytest.mark.parametrize("name", ["talk.webm", "talk.mp3"])
def test_any_kind_on_standard_input(recording, tmp_path, monkeypatch, name):
    path = convert(recording(), tmp_path / name)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    samples = joined(open_audio("-", start=0.5, step_ms=100))
    assert len(samples) / RATE == pytest.approx(1.5, abs=0.1)


@pytest.fixture
def stdin(monkeypatch):
    def set_input(path):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))

    return set_input


@needs_ffmpeg
@pytest.mark.parametrize("name", ["talk.m4a", "talk.mp4", "talk.mov"])
def test_a_pipe_whose_index_comes_last_gives_what_the_file_gives(recording, tmp_path, stdin, name):
    path = convert(recording(seconds=3.0), tmp_path / name, "-c:a", "aac")
    stdin(path)
    assert np.array_equal(joined(open_audio("-", step_ms=100)), read_audio(path))
    stdin(path)
    part = joined(open_audio("-", start=0.7, end=2.2, step_ms=100))
    assert np.array_equal(part, read_audio(path, 0.7, 2.2))


@needs_ffmpeg
def test_a_pipe_whose_index_comes_first_is_heard_as_it_comes(
    recording, tmp_path, stdin, monkeypatch
):
    how = ["-c:a", "aac", "-movflags", "+faststart"]
    path = convert(recording(seconds=3.0), tmp_path / "talk.m4a", *how)
    monkeypatch.setattr(spooled.tempfile, "NamedTemporaryFile", None)  # nothing is kept
    stdin(path)
    assert len(joined(open_audio("-"))) / RATE == pytest.approx(3.0, abs=0.1)


@needs_ffmpeg
def test_a_pipe_without_its_index_is_cut(recording, tmp_path, stdin):
    path = convert(recording(seconds=10.0), tmp_path / "talk.m4a")
    path.write_bytes(path.read_bytes()[:20000])
    stdin(path)
    with pytest.raises(DragomanError, match=r"^Standard input is cut short: the index"):
        next(open_audio("-"))


@needs_ffmpeg
def test_a_pipe_whose_index_comes_last_is_told_to_be_awaited(
    recording, tmp_path, stdin, monkeypatch, caplog
):
    monkeypatch.setattr(spooled, "PATIENCE", -1.0)
    stdin(convert(recording(), tmp_path / "talk.m4a"))
    joined(open_audio("-"))
    [told] = caplog.messages
    assert "has its index at its end: it is heard when it has ended" in told


@needs_ffmpeg
def test_a_webm_that_is_cut_is_read_and_said(recording, tmp_path, caplog):
    path = convert(recording(seconds=10.0), tmp_path / "talk.webm")
    path.write_bytes(path.read_bytes()[:20000])
    assert 0.5 < len(read_audio(path)) / RATE < 9.5
    assert "is damaged" in caplog.text


@needs_ffmpeg
@pytest.mark.parametrize("start", [0.0, 10.0])
@pytest.mark.parametrize("name", ["talk.webm", "talk.m4a"])
def test_it_is_told_where_one_is_damaged(recording, tmp_path, caplog, name, start):
    path = convert(recording(seconds=40.0), tmp_path / name)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 3000] = np.random.default_rng(1).bytes(3000)
    path.write_bytes(data)
    read_audio(path, start)
    [told] = caplog.messages
    places = re.findall(r"\b(\d):(\d\d)", told.split(";")[0])
    assert abs(60 * int(places[0][0]) + int(places[0][1]) - 20) <= 6  # webm has groups of 5 s
    assert f"{path} is damaged at about 0:" in told


@needs_ffmpeg
def test_an_m4a_that_is_cut_has_lost_its_index(recording, tmp_path):
    path = convert(recording(seconds=10.0), tmp_path / "talk.m4a")
    path.write_bytes(path.read_bytes()[:20000])
    with pytest.raises(DragomanError, match="is cut short: the index at its end is missing"):
        open_audio(path)


@pytest.mark.parametrize(
    ("complaint", "told"),
    [
        ("[in#0 @ 0x56] moov atom not found", "cut short: the index at its end is missing"),
        ("[in#0 @ 0x56] EBML header parsing failed", r"\(ffmpeg: EBML header parsing failed\)"),
    ],
)
def test_what_ffmpeg_says_first_says_why(complaint, told, tmp_path, monkeypatch):
    """The rest is that nothing can be done without that."""
    program = tmp_path / "ffmpeg"
    last = "Error opening input files: Invalid data found when processing input"
    program.write_text(f"#!/bin/sh\necho '{complaint}' >&2\necho '{last}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(program) if name == "ffmpeg" else None)
    (tmp_path / "talk.m4a").write_bytes(b"\0\0\0\x20ftypM4A " + bytes(1000))
    with pytest.raises(DragomanError, match=told):
        open_audio(tmp_path / "talk.m4a")


@needs_ffmpeg
def test_a_film_without_sound(tmp_path):
    path = tmp_path / "silent.mp4"
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=d=0.2:s=16x16", path]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    for ask in (open_audio, duration):
        with pytest.raises(DragomanError, match="holds no sound"):
            ask(path)


@needs_ffmpeg
def test_leaving_early_ends_ffmpeg(recording, tmp_path, monkeypatch):
    started = []
    popen = subprocess.Popen

    def remember(*args, **kwargs):
        started.append(popen(*args, **kwargs))
        return started[-1]

    path = convert(recording(seconds=60.0), tmp_path / "talk.mkv", "-c:a", "flac")
    monkeypatch.setattr(ffmpeg.subprocess, "Popen", remember)
    chunks = open_audio(path, step_ms=100)
    next(chunks)
    del chunks
    assert started[0].poll() is not None


def film(path, recording, delay=0.0):
    """A picture of 4 s with two tracks: German, a chirp that begins late, and French, a tone."""
    picture = ["-f", "lavfi", "-i", "testsrc=d=4:s=64x64"]
    chirped = ["-itsoffset", str(delay), "-i", recording(seconds=3.0, rate=48000, channels=2)]
    tone = ["-f", "lavfi", "-i", "sine=f=440:d=4:r=44100"]
    told = ["-metadata:s:a:0", "language=deu", "-metadata:s:a:1", "language=fra"]
    command = ["ffmpeg", "-v", "error", *picture, *chirped, *tone, "-map", "0:v"]
    subprocess.run([*command, "-map", "1:a", "-map", "2:a", "-c:a", "flac", *told, path],
                   check=True, stdin=subprocess.DEVNULL)  # fmt: skip
    return path


def test_of_several_tracks_it_is_said_once_that_the_first_is_heard(tmp_path, monkeypatch, caplog):
    """Nobody knew, who had not looked into his film, that there was another language in it."""
    two = Contents((Track("deu", "stereo"), Track("fra", "mono")))
    monkeypatch.setattr(ffmpeg, "_program", lambda name: "")
    monkeypatch.setattr(
        ffmpeg, "contents_of", lambda path: two if "film" in path.name else Contents()
    )
    monkeypatch.setattr(ffmpeg._Pipe, "start", lambda *rest: rest)
    monkeypatch.setattr(ffmpeg, "_decoded", lambda pipe, **how: pipe)
    film, talk = tmp_path / "film.mkv", tmp_path / "talk.mkv"
    for path, track in ((film, "fr"), (talk, None), (film, None), (film, None)):
        ffmpeg.open_ffmpeg(path, Span(0.0, None), track)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{film} has 2 audio tracks: 1 (German, stereo), 2 (French, mono); the first is heard "
        "('dragoman translate' and 'live' have --track)."
    )


@needs_ffmpeg
def test_the_track_that_is_heard(recording, tmp_path, monkeypatch, caplog):
    path = film(tmp_path / "film.mkv", recording)
    first = read_audio(path)
    assert "(French, mono); the first is heard" in caplog.text
    for track, likes in (("1", True), ("German", True), ("2", False), ("fr", False)):
        assert (likeness(joined(open_audio(path, track=track)), first) > 0.999) == likes
    told = r"has 2 audio tracks: 1 \(German, stereo\), 2 \(French, mono\); there is no track "
    for track in ("3", "es"):
        with pytest.raises(DragomanError, match=told + track):
            open_audio(path, track=track)
    content = path.read_bytes()
    caplog.clear()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert likeness(joined(open_audio("-")), first) > 0.999
    assert caplog.messages == [
        "Standard input has 2 audio tracks: 1 (German, stereo), 2 (French, mono); the first is "
        "heard ('dragoman translate' and 'live' have --track)."
    ]
    for track, told in (("2", None), ("3", "has no audio track 3"), ("fr", "by a number")):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        if told is None:
            assert len(joined(open_audio("-", track=track))) == 4 * RATE
        else:
            with pytest.raises(DragomanError, match=told):
                joined(open_audio("-", track=track))


@needs_ffmpeg
@pytest.mark.parametrize("start", [0.0, 0.25, 1.0])
def test_sound_that_begins_after_the_picture_keeps_its_place(recording, tmp_path, start):
    samples = read_audio(film(tmp_path / "film.mkv", recording, delay=0.5), start)
    whole = np.concatenate([np.zeros(RATE // 2, np.float32), chirp(3.0, channels=2).mean(axis=1)])
    assert likeness(samples, whole[round(start * RATE) :]) > 0.999


def test_without_ffmpeg_the_sentence_says_so(tmp_path, monkeypatch):
    path = tmp_path / "talk.m4a"
    path.write_bytes(b"\0\0\0\x20ftypM4A " + bytes(100))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DragomanError, match="install ffmpeg"):
        open_audio(path)
