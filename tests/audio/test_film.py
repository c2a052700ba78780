"""Films with a mix in them: what ffmpeg is asked, by a stand-in; and what it makes, where it is."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dragoman.audio.film import Film, check_film
from dragoman.audio.tracks import contents_of
from dragoman.errors import DragomanError
from tests.audio import fake_ffmpeg
from tests.audio.test_ffmpeg import film, needs_ffmpeg
from tests.cli.commands import dragoman

SYSTEM = ("--model", "tests.talkers:sentences", "--from", "de", "--to", "en", "--step", "500ms",
          "--policy", "greedy")  # fmt: skip
CUE = "1\n00:00:01,000 --> 00:00:02,000\nGuten Morgen.\n"


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """The only program there is, besides what the stand-in itself needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "ffmpeg"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {fake_ffmpeg.__file__} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "mix.wav"
    soundfile.write(path, np.zeros((48000, 2)), 48000)
    return path


def pairs(args, option):
    return [value for name, value in pairwise(args) if name == option]


def made(tmp_path, sound, name, **how):
    """The command that makes a film."""
    source = tmp_path / "film.mkv"
    source.touch()
    Film(source, "de", **how).make(sound, tmp_path / name, lambda: False)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    return json.loads((tmp_path / name).read_text())


def test_the_picture_is_kept_and_the_mix_is_the_first_track(stand_in, tmp_path, sound):
    args = made(tmp_path, sound, "film.de.mkv")
    assert pairs(args, "-i") == [f"file:{tmp_path / 'film.mkv'}", f"file:{sound}"]
    assert pairs(args, "-map") == ["0:v", "1:a", "0:a?", "0:s?", "0:t?"]
    assert pairs(args, "-c") == ["copy"]
    assert pairs(args, "-c:a:0") == ["aac"]
    assert pairs(args, "-metadata:s:a:0") == ["language=deu"]
    assert [pairs(args, f"-disposition:a:{n}") for n in range(3)] == [["default"], ["0"], ["0"]]
    assert pairs(args, "-f") == ["matroska"]
    assert not pairs(args, "-t")


def test_captions_are_subtitles_if_there_are_any(stand_in, tmp_path, sound):
    files = [tmp_path / name for name in ("de.srt", "en.vtt", "none.srt", "gone.srt")]
    for file, text in zip(files, (CUE, f"WEBVTT\n\n{CUE}".replace(",", "."), ""), strict=False):
        file.write_text(text)
    captions = tuple(zip(files, ("de", "en", "fr", "fr"), strict=True))
    args = made(tmp_path, sound, "film.de.mp4", captions=captions, end=90)
    assert pairs(args, "-i")[2:] == [f"file:{file}" for file in files[:2]]
    assert pairs(args, "-map") == ["0:v", "1:a", "0:a?", "2:s", "3:s"]
    assert [pairs(args, f"-c:s:{n}") for n in range(3)] == [["mov_text"], ["mov_text"], []]
    languages = [pairs(args, f"-metadata:s:s:{n}") for n in range(2)]
    assert languages == [["language=deu"], ["language=eng"]]
    assert pairs(args, "-t") == ["90.000000"]
    assert pairs(args, "-strict") == ["experimental"]  # an older ffmpeg copies no flac without it


def test_what_ffmpeg_cannot_do_is_told_and_leaves_nothing(stand_in, tmp_path, sound, monkeypatch):
    monkeypatch.setenv("FAKE_FFMPEG", "fail")
    told = r"Cannot write .*film.mp4 \(ffmpeg: No space left on device\); a .mkv takes more kinds"
    with pytest.raises(DragomanError, match=told):
        made(tmp_path, sound, "film.mp4")
    assert {path.name for path in tmp_path.iterdir()} == {"bin", "film.mkv", "mix.wav"}


def test_a_film_that_is_given_up_leaves_nothing(stand_in, tmp_path, sound, monkeypatch):
    monkeypatch.setenv("FAKE_FFMPEG", "wait")
    (tmp_path / "film.mkv").touch()
    with pytest.raises(KeyboardInterrupt):
        Film(tmp_path / "film.mkv", "de").make(sound, tmp_path / "a.mkv", lambda: True)
    assert {path.name for path in tmp_path.iterdir()} == {"bin", "film.mkv", "mix.wav"}


def test_a_film_needs_a_picture(stand_in, tmp_path):
    for name in ("film.mkv", "talk.mp3"):
        (tmp_path / name).touch()
    check_film(str(tmp_path / "film.mkv"), Path("film.de.mp4"))
    check_film(str(tmp_path / "gone.mkv"), Path("film.de.mp4"))  # whoever opens it will tell
    for name in (str(tmp_path / "talk.mp3"), "-"):
        told = "which has none; name a sound file, such as film.de.wav"
        with pytest.raises(DragomanError, match=told):
            check_film(name, Path("film.de.mp4"))


def test_a_film_needs_ffmpeg(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        DragomanError, match=r"install ffmpeg; or name a sound file, such as a\.wav"
    ):
        check_film("film.mkv", Path("a.mp4"))


def picture_of(path):
    """The bytes of the picture, as they are coded."""
    command = ["ffmpeg", "-v", "error", "-i", path, "-map", "0:v", "-c", "copy", "-f", "h264", "-"]
    return subprocess.run(command, check=True, capture_output=True).stdout


@needs_ffmpeg
@pytest.mark.parametrize("suffix", [".mkv", ".mp4"])
def test_a_film_as_ffmpeg_makes_it(recording, tmp_path, sound, suffix):
    source = film(tmp_path / "film.mkv", recording)
    (tmp_path / "de.srt").write_text(CUE)
    target = tmp_path / f"film.de{suffix}"
    Film(source, "de", ((tmp_path / "de.srt", "de"),)).make(sound, target, lambda: False)
    held = contents_of(target)
    assert [track.language for track in held.tracks] == ["deu", "deu", "fra"]
    assert held.tracks[0].layout == "stereo"
    assert (held.picture, held.subtitles) == (True, 1)
    assert picture_of(target) == picture_of(source)


@needs_ffmpeg
@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_a_film_is_heard_in_a_track_and_has_its_mix_and_its_captions(recording, tmp_path, suffix):
    source, target = film(tmp_path / "film.mkv", recording), tmp_path / f"film.en{suffix}"
    options = (*SYSTEM, "--track", "French", "--captions", tmp_path / "film.srt")
    done = dragoman("translate", source, *options, "--mix", target)
    assert done.returncode == 0, done.stderr
    held = contents_of(target)
    assert [track.language for track in held.tracks] == ["eng", "deu", "fra"]
    assert held.tracks[0].layout == "mono"  # as the French track is
    assert held.subtitles == 1
    assert sorted(os.listdir(tmp_path)) == sorted(["film.mkv", "film.srt", target.name, "talk.wav"])


@needs_ffmpeg
def test_a_picture_that_the_film_cannot_hold_is_told_before_any_work(tmp_path):
    source, target = tmp_path / "film.webm", tmp_path / "film.de.mp4"
    clip = ["-f", "lavfi", "-i", "testsrc=d=0.2:s=32x32", "-f", "lavfi", "-i", "sine=d=0.2"]
    coded = ["-c:v", "libvpx", "-c:a", "libopus", source]
    subprocess.run(["ffmpeg", "-v", "error", *clip, *coded], check=True)
    told = rf"Cannot write {target} \(ffmpeg: Could not find tag for codec vp8 .*; a .mkv takes"
    with pytest.raises(DragomanError, match=told):
        check_film(str(source), target)
    check_film(str(source), target.with_suffix(".mkv"))
    assert os.listdir(tmp_path) == ["film.webm"]
