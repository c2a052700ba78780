"""Compressed recordings through a pipe, where there is no ffmpeg."""

import io
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from dragoman.audio import spooled
from dragoman.audio.source import open_audio, read_audio
from dragoman.errors import DragomanError


@pytest.fixture(autouse=True)
def no_ffmpeg(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def stdin(monkeypatch):
    def set_input(data):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    return set_input


def joined(chunks):
    return np.concatenate([chunk.samples for chunk in chunks])


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("talk.ogg", {}),
        ("talk.ogg", {"format": "OGG", "subtype": "OPUS"}),
        ("talk.mp3", {}),
        ("talk.flac", {}),
        ("talk.aiff", {}),
        ("talk.wav", {"subtype": "ULAW"}),
        ("talk.wav", {"subtype": "IMA_ADPCM"}),
        ("talk.wav", {"format": "RF64"}),
    ],
)
def test_a_pipe_gives_what_the_file_gives(recording, stdin, name, how):
    path = recording(name, seconds=3.0, rate=24000, channels=2, **how)
    stdin(path.read_bytes())
    assert np.array_equal(joined(open_audio("-", step_ms=100)), read_audio(path))
    stdin(path.read_bytes())
    part = joined(open_audio("-", start=0.7, end=2.2, step_ms=100))
    assert np.array_equal(part, read_audio(path, start=0.7, end=2.2))


def test_a_named_pipe(recording, tmp_path):
    path = recording("talk.ogg")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(path.read_bytes(),))
    writer.start()
    assert np.array_equal(joined(open_audio(pipe)), read_audio(path))
    writer.join()


def test_nothing_is_left_on_the_disk(recording, stdin, monkeypatch, tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    stdin(recording("talk.flac").read_bytes())
    chunks = open_audio("-", step_ms=100)
    next(chunks)
    assert list(folder.iterdir())
    for _ in chunks:
        pass
    assert not list(folder.iterdir())
    stdin(b"fLaC" + bytes(100))
    with pytest.raises(DragomanError):
        next(open_audio("-"))
    assert not list(folder.iterdir())


def test_one_that_is_cut_is_told_of_by_the_name_of_the_pipe(recording, stdin, caplog):
    data = recording("talk.ogg", seconds=20.0).read_bytes()
    stdin(data[: len(data) // 2])
    assert 0.5 < len(joined(open_audio("-"))) / 16000 < 19.5
    assert caplog.messages == ["Standard input seems to be cut short: its end is missing."]


def test_one_that_goes_on_is_told_to_be_awaited(recording, stdin, caplog, monkeypatch):
    monkeypatch.setattr(spooled, "PATIENCE", -1.0)
    stdin(recording("talk.ogg", seconds=5.0).read_bytes())
    joined(open_audio("-"))
    assert len(caplog.messages) == 1
    assert "install ffmpeg" in caplog.text


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"\0\0\0\x20ftypM4A " + bytes(100), "needs ffmpeg: install it"),
        (bytes(range(200)), "plain samples, say how to read them: --raw"),
        (b"OggS" + bytes(100), "Standard input is not a recording that can be read"),
    ],
)
def test_what_cannot_be_read_says_why(stdin, data, match):
    stdin(data)
    with pytest.raises(DragomanError, match=match):
        next(open_audio("-"))


def test_a_full_disk_is_a_sentence(recording, stdin, monkeypatch):
    def full(**how):
        return open("/dev/full", "r+b", buffering=0)

    monkeypatch.setattr(spooled.tempfile, "NamedTemporaryFile", full)
    stdin(recording("talk.flac").read_bytes())
    with pytest.raises(DragomanError, match="the disk is full"):
        next(open_audio("-"))


def test_an_address_is_told_from_a_file():
    with pytest.raises(
        DragomanError, match=r"^https://example.org/talk.mp3 is an address, not a file; .*curl"
    ):
        open_audio("https://example.org/talk.mp3")


def test_the_address_of_a_file_is_told_with_its_name():
    """As file managers copy it."""
    with pytest.raises(DragomanError, match=r"^Name the file itself, .*: /tmp/für dich/a b\.ogg$"):
        open_audio("file:///tmp/f%C3%BCr%20dich/a%20b.ogg")
