"""What the microphone heard is on the disk: whole after Ctrl-C, an error, and a kill."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dragoman.audio.chunk import RATE
from dragoman.audio.microphone import Microphone
from dragoman.audio.record import recorded
from dragoman.audio.source import read_audio
from dragoman.errors import DragomanError
from tests.audio.conftest import chirp
from tests.audio.fake_sounddevice import FakeSounddevice
from tests.scripted import chunks_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def fake(monkeypatch):
    fake = FakeSounddevice([("Desk", 1, 0, (16000,))])
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


@pytest.mark.parametrize("suffix", [".flac", ".wav"])
def test_all_that_was_heard_is_kept(fake, tmp_path, suffix):
    fake.script = [chirp(1.3), None]
    microphone = Microphone(step_ms=250)
    path, heard = tmp_path / f"talk{suffix}", 0.0
    with recorded(path, microphone.chunks(), microphone.stop, pytest.fail) as chunks:
        for chunk in chunks:
            heard += chunk.seconds
            if heard >= 1.0:
                microphone.stop()
    assert np.allclose(read_audio(path), chirp(1.3), atol=1e-4)


def test_an_error_in_the_middle_costs_nothing_that_was_captured(fake, tmp_path):
    fake.script = [chirp(1.3), None]
    microphone = Microphone(step_ms=250)
    chunks = microphone.chunks()
    first = next(chunks)
    chunks = itertools.chain([first], chunks)
    recording = recorded(tmp_path / "talk.flac", chunks, microphone.stop, pytest.fail)
    with pytest.raises(KeyError), recording:
        raise KeyError
    assert len(read_audio(tmp_path / "talk.flac")) == pytest.approx(1.3 * RATE)


def test_a_source_that_fails_when_it_is_stopped_leaves_the_recording_whole(tmp_path):
    """As a microphone does that was pulled out meanwhile."""

    def chunks():
        yield from chunks_of(1000, 250)
        raise DragomanError("It is gone.")

    path = tmp_path / "talk.flac"
    with (
        pytest.raises(DragomanError, match="gone") as caught,
        recorded(path, chunks(), lambda: None, pytest.fail),
    ):
        pass
    assert len(read_audio(path)) == RATE
    assert caught.value.__traceback__ is not None  # which would keep the file open


def test_a_recording_is_never_overwritten(tmp_path):
    path = tmp_path / "talk.flac"
    path.write_bytes(b"the meeting of yesterday")
    with (
        pytest.raises(DragomanError, match="is there already"),
        recorded(path, iter(chunks_of(1000, 500)), lambda: None, pytest.fail),
    ):
        pass
    assert path.read_bytes() == b"the meeting of yesterday"


def test_a_full_disk_is_told_once_and_the_talk_goes_on(tmp_path, monkeypatch):
    told = []

    def full(self, samples):
        raise soundfile.LibsndfileError(2, "No space left")

    monkeypatch.setattr(soundfile.SoundFile, "write", full)
    with recorded(
        tmp_path / "talk.flac", iter(chunks_of(2000, 500)), lambda: None, told.append
    ) as chunks:
        assert len(list(chunks)) == 4
    assert len(told) == 1
    assert "ends here" in told[0]


ROOMLESS = """
import resource
import numpy as np
from dragoman.audio.chunk import Chunk
from dragoman.audio.record import recorded
limit = 100_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
second = Chunk(np.zeros(16000, np.float32), last=False)
with recorded(Path("talk.wav"), iter([second] * 9), lambda: None, print) as chunks:
    print(len(list(chunks)))
"""


def test_a_recording_that_finds_no_more_room_says_why_and_keeps_what_it_has(tmp_path):
    code = "from pathlib import Path\n" + ROOMLESS
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    told, heard = done.stdout.splitlines()
    assert told.startswith("The recording ends here. Cannot write talk.wav: files that large are")
    assert heard == "9"
    assert soundfile.info(tmp_path / "talk.wav").duration >= 3


LIVE = """
import sys, threading, time
import numpy as np
from tests.audio.fake_sounddevice import FakeSounddevice
fake = FakeSounddevice([("Desk", 1, 0, (16000,))])
fake.script = [*[x for _ in range(1000) for x in (np.full(1600, 0.25, np.float32), 0.1)]]
sys.modules["sounddevice"] = fake
from dragoman.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_live_leaves_a_whole_recording_however_it_is_ended(tmp_path, how):
    path = tmp_path / "talk.flac"
    process = subprocess.Popen(
        [sys.executable, "-c", LIVE, "live", "--model", "tests.talkers:sentences", "--from", "de",
         "--step", "200ms", "--policy", "greedy", "--record", str(path)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    said = ""
    while "first" not in said:  # 1.6 s
        said += process.stdout.read(1)
    process.send_signal(how)
    _, err = process.communicate()
    assert process.returncode == (-9 if how == signal.SIGKILL else 0), err
    sound = read_audio(path)
    assert len(sound) >= 1.2 * RATE
    assert np.allclose(sound, 0.25, atol=1e-3)
