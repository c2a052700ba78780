import errno
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dragoman.audio.chunk import RATE
from dragoman.audio.source import read_audio
from dragoman.audio.write import FORMATS, SoundWriter, write_sound
from dragoman.errors import DragomanError
from tests import warm
from tests.audio.conftest import chirp

STEP = 1 / 2**15


def test_a_clip_comes_back(tmp_path):
    path = tmp_path / "a.wav"
    write_sound(path, chirp(1.0))
    assert np.abs(read_audio(path) - chirp(1.0)).max() <= STEP
    assert os.listdir(tmp_path) == ["a.wav"]


def test_two_channels_and_another_rate(tmp_path):
    write_sound(tmp_path / "a.wav", chirp(0.5, 24000, 2), 24000)
    samples, rate = soundfile.read(tmp_path / "a.wav")
    assert (samples.shape, rate) == ((12000, 2), 24000)


def test_beyond_full_scale_is_clipped(tmp_path):
    write_sound(tmp_path / "a.wav", np.array([2.0, -3.0, 0.5], np.float32))
    assert np.allclose(read_audio(tmp_path / "a.wav"), [1, -1, 0.5], atol=STEP)


def test_block_by_block_and_nothing_there_before_the_end(tmp_path):
    path = tmp_path / "a.wav"
    with SoundWriter(path) as writer:
        for block in np.array_split(chirp(1.0), 7):
            writer.write(block)
            assert not path.exists()
    assert np.abs(read_audio(path) - chirp(1.0)).max() <= STEP


def test_after_an_error_the_old_file_is_untouched(tmp_path):
    path = tmp_path / "a.wav"
    write_sound(path, chirp(1.0))
    before = path.read_bytes()

    def fail():
        with SoundWriter(path) as writer:
            writer.write(chirp(0.1))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.wav"]


def test_a_link_stays_one_and_leads_to_the_sound(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "a.wav").symlink_to(tmp_path / "disk" / "b.wav")
    write_sound(tmp_path / "a.wav", chirp(0.1))
    assert (tmp_path / "a.wav").is_symlink()
    assert os.listdir(tmp_path / "disk") == ["b.wav"]
    assert len(read_audio(tmp_path / "a.wav")) == RATE / 10


def test_a_pipe_or_a_device_is_not_replaced_by_a_file(tmp_path):
    pipe, link = tmp_path / "a.wav", tmp_path / "b.wav"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(DragomanError, match="is a device or a pipe; name a file"):
            write_sound(path, chirp(0.1))
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["a.wav", "b.wav"]


def test_closing_keeps_what_there_is(tmp_path):
    writer = SoundWriter(tmp_path / "a.wav")
    writer.write(chirp(0.25))
    writer.close()
    writer.close()
    assert len(read_audio(tmp_path / "a.wav")) == RATE / 4
    with pytest.raises(DragomanError, match="already closed"):
        writer.write(chirp(0.1))


def test_places_where_nothing_can_be_written(tmp_path):
    with pytest.raises(DragomanError, match="is a folder"):
        write_sound(tmp_path, chirp(0.1))
    with pytest.raises(DragomanError, match="cannot be written: No such file or directory"):
        write_sound(tmp_path / "no" / "a.wav", chirp(0.1))
    (tmp_path / "file").touch()
    with pytest.raises(DragomanError, match="cannot be written: Not a directory"):
        write_sound(tmp_path / "file" / "a.wav", chirp(0.1))


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".mp3", ".ogg", ".opus", ".MP3"])
@pytest.mark.parametrize("rate", [16000, 22050, 44100])
def test_the_suffix_says_how_it_is_written(tmp_path, suffix, rate):
    path = tmp_path / f"a{suffix}"
    write_sound(path, chirp(2.0, rate, 2), rate)
    info = soundfile.info(path)
    assert (info.format, info.subtype) == FORMATS[suffix.lower()]
    assert info.duration == pytest.approx(2.0, abs=0.01)
    samples, read_rate = soundfile.read(path)
    loud = np.abs(samples).mean(axis=1) > 0.01
    assert loud.sum() / read_rate == pytest.approx(2.0, abs=0.3)
    assert os.listdir(tmp_path) == [path.name]


def test_a_long_block_of_vorbis_does_not_break_the_encoder(tmp_path):
    write_sound(tmp_path / "a.ogg", np.zeros(120 * RATE, np.float32))
    assert soundfile.info(tmp_path / "a.ogg").duration == pytest.approx(120)


@pytest.mark.parametrize("name", ["a", "a.txt", "a.wave"])
def test_a_suffix_that_says_nothing_is_refused(tmp_path, name):
    with pytest.raises(DragomanError, match=r"Sound is written to \.wav, \.flac, \.mp3, .* not to"):
        write_sound(tmp_path / name, chirp(0.1))
    assert os.listdir(tmp_path) == []


def test_a_disk_that_fills_up_is_a_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    writer = SoundWriter(tmp_path / "a.wav")

    def full(block):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer._file, "write", full)
    with pytest.raises(DragomanError, match=r"Cannot write .*a\.wav: the disk is full; make"):
        writer.write(chirp(0.1))
    assert os.listdir(tmp_path) == []


ROOMLESS = """
import resource, sys
from dragoman.audio.write import write_sound
from dragoman.errors import DragomanError
from tests.audio.conftest import chirp
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    write_sound(sys.argv[1], chirp(2.0))
except DragomanError as error:
    print(error)
"""


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_finds_no_room_when_the_file_is_closed_is_told_and_nothing_is_left(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    write_sound(path, chirp(2.0))
    limit = path.stat().st_size - 5  # libsndfile writes the last of most formats when it closes
    path.unlink()
    done = subprocess.run(
        warm.command("-c", ROOMLESS, path, limit),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith(f"Cannot write {path}: files that large"), done
    assert os.listdir(tmp_path) == []
