"""Several recordings in one run: where the files of each go, and a bad one costs no other."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
import soundfile

from dragoman.cli.captions import CaptionFiles
from dragoman.cli.recordings import Dub, Recording
from dragoman.cli.sound import Part
from dragoman.setup import Setup, System
from tests import warm
from tests.cli.commands import ROOT, dragoman, process
from tests.cli.terminal import terminal
from tests.scripted import ScriptedModel

SYSTEM = ("--model", "tests.scripted:steady", "--from", "de", "--step", "500ms",
          "--policy", "greedy")  # fmt: skip
SAID = " ".join(f"word{i}" for i in range(12))


@pytest.fixture
def talks(tmp_path):
    """Two recordings of twelve words each, and one that is empty."""
    for name, seconds in (("a.wav", 1.7), ("c.flac", 2.1)):
        soundfile.write(tmp_path / name, np.zeros(round(16000 * seconds), np.float32), 16000)
    (tmp_path / "b.mp3").touch()
    return tmp_path


def test_each_has_its_heading_and_its_summary(talks):
    first, second = talks / "a.wav", talks / "c.flac"
    done = dragoman("translate", first, second, *SYSTEM)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"==> {first} <==\n{SAID}\n\n==> {second} <==\n{SAID}\n"
    assert f"{first}: 12 words from 1.7 s" in done.stderr
    assert f"{second}: 12 words from 2.1 s" in done.stderr


def test_one_has_neither(talks):
    done = dragoman("translate", talks / "a.wav", *SYSTEM)
    assert done.stdout == f"{SAID}\n"
    assert done.stderr.startswith("12 words from")


def test_json_tells_of_which_file_a_line_is(talks):
    files = [talks / "a.wav", talks / "c.flac"]
    rows = dragoman("translate", *files, *SYSTEM, "--json").stdout.splitlines()
    said = dict.fromkeys(map(str, files), "")
    for row in map(json.loads, rows):
        said[row["file"]] += row["said"]
    assert [text.strip() for text in said.values()] == [SAID, SAID]
    alone = dragoman("translate", files[0], *SYSTEM, "--json").stdout.splitlines()
    assert "file" not in json.loads(alone[0])


def test_one_that_cannot_be_heard_costs_the_others_nothing(talks):
    files = [talks / name for name in ("missing.wav", "a.wav", "b.mp3", "c.flac")]
    done = dragoman("translate", *files, *SYSTEM, "--captions", talks / "cues" / "{name}.vtt")
    assert done.returncode == 2
    assert "word11" in (talks / "cues" / "a.vtt").read_text()
    assert "word11" in (talks / "cues" / "c.vtt").read_text()
    assert done.stdout.startswith(f"==> {files[1]} <==\n")
    assert f"dragoman: There is no file {files[0]}.\n" in done.stderr
    assert f"dragoman: {files[2]} is empty.\n" in done.stderr
    last = f"dragoman: 2 of 4 recordings failed: {files[0]}, {files[2]}.\n"
    assert done.stderr.endswith(last)


def test_the_files_of_each_lie_in_folders(talks):
    done = dragoman(
        *("translate", talks / "a.wav", talks / "c.flac", *SYSTEM, "--captions", f"{talks}/cues/"),
        *("--speak", talks / "{name}" / "speech.flac", "--trace", f"{talks}/traces/"),
    )
    assert done.returncode == 0, done.stderr
    for name in ("a", "c"):
        assert (talks / "cues" / f"{name}.srt").read_text().count("word") == 12
        assert soundfile.info(talks / name / "speech.flac").duration > 1
        rows = (talks / "traces" / f"{name}.jsonl").read_text().splitlines()
        assert name in json.loads(rows[0])["source"].rpartition("/")[2]


def test_one_recording_may_have_them_in_folders_too(talks):
    options = (
        "--captions",
        f"{talks}/here/{{name}}.srt",
        "--captions",
        f"{talks}/there/",
        "--quiet",
    )
    done = dragoman("translate", talks / "a.wav", *SYSTEM, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert (talks / "here" / "a.srt").read_bytes() == (talks / "there" / "a.srt").read_bytes()


def test_no_two_write_the_same_file(talks):
    again = talks / "more" / "a.ogg"
    again.parent.mkdir()
    soundfile.write(again, np.zeros(16000), 16000)
    for files in ((talks / "a.wav", again), (again, again)):
        done = dragoman("translate", *files, *SYSTEM, "--captions", f"{talks}/cues/")
        assert done.returncode == 2
        told = f"{files[0]} and {files[1]} would both be written to {talks}/cues/a.srt"
        assert told in done.stderr
    assert not (talks / "cues").exists()


def test_one_file_is_not_enough_for_several(talks):
    files = (talks / "a.wav", talks / "c.flac")
    for name, example in (("all.vtt", ".vtt"), ("all", ".srt")):
        done = dragoman("translate", *files, *SYSTEM, "--captions", name)
        assert done.returncode == 2
        assert "is one file, and there are 2 recordings: name a folder (--cap" in done.stderr
        assert f"(--captions '{{name}}{example}')" in done.stderr


def test_a_pipe_is_heard_alone(talks):
    done = dragoman("translate", talks / "a.wav", "-", *SYSTEM)
    assert done.returncode == 2
    assert "'-' is a pipe, which is heard alone" in done.stderr


def test_live_writes_captions_to_a_file(talks):
    done = dragoman("live", "--file", talks / "a.wav", *SYSTEM, "--captions", f"{talks}/cues/")
    assert done.returncode == 2
    assert "--captions writes a .srt or .vtt file, not a folder" in done.stderr
    assert not (talks / "cues" / "{name}").exists()


def test_ctrl_c_ends_the_one_and_leaves_the_others(talks):
    args = ("--realtime", "--trace", f"{talks}/traces/")
    files = [str(talks / name) for name in ("a.wav", "c.flac")]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = warm.Copy("-m", "dragoman", "translate", *files, *SYSTEM, *args, **streams)
    trace = talks / "traces" / "a.jsonl"
    while not trace.exists() or "heard" not in trace.read_text():
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    out, told = running.communicate()
    assert running.returncode == 130, told
    assert '{"end":true}' in trace.read_text()
    assert "c.flac" not in out
    assert told.endswith(f"1 of 2 recordings was not heard: {files[1]}.\n")
    assert not (talks / "traces" / "c.jsonl").exists()


def test_captions_are_gone_on_with_where_there_are_any(talks):
    cues, files = talks / "cues", (talks / "a.wav", talks / "c.flac")
    dragoman("translate", *files, *SYSTEM, "--captions", f"{cues}/")
    whole = {name: (cues / name).read_text() for name in ("a.srt", "c.srt")}
    (cues / "c.srt").unlink()
    done = dragoman("translate", *files, *SYSTEM, "--captions", f"{cues}/", "--resume")
    assert done.returncode == 0, done.stderr
    assert {name: (cues / name).read_text() for name in whole} == whole
    assert f"{files[0]}: Beginning anew" in done.stderr


def test_one_bar_is_for_all(talks):
    text = talks / "text.txt"
    model = ("--model", "tests.talkers:slow", *SYSTEM[2:], "--step", "2s")
    with text.open("w") as stdout:
        files = (talks / "a.wav", talks / "missing.wav", talks / "c.flac")
        with terminal("translate", *files, *model, stdout=stdout) as screen:
            screen.until("listening 1/3")
            screen.until("listening 3/3")
            assert screen.rest() == 2
    assert not any("listening" in line for line in screen.lines)
    assert text.read_text().count("==>") == 2


def test_a_reader_who_has_had_enough_ends_all(talks):
    files = [str(talks / name) for name in ("a.wav", "c.flac")] * 20
    command = warm.command("-m", "dragoman", "translate", *files, *SYSTEM)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stdout:
        done = subprocess.run(command, cwd=ROOT, stdout=stdout, stderr=-1, text=True, check=False)
    assert "39 of 40 recordings were not heard" in done.stderr
    assert "and 34 more." in done.stderr
    assert "Traceback" not in done.stderr


def test_nor_are_recordings_heard_whose_text_finds_no_room(talks):
    files = [str(talks / name) for name in ("a.wav", "c.flac")]
    command = warm.command("-m", "dragoman", "translate", *files, *SYSTEM)
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=-1, text=True, check=False)
    assert done.returncode == 2
    assert f"1 of 2 recordings was not heard: {files[1]}." in done.stderr


def test_the_model_is_loaded_once(talks):
    done = process(
        *("translate", talks / "a.wav", talks / "c.flac", "--model", "tests.talkers:loaded_once"),
        *SYSTEM[2:],
    )
    assert done.returncode == 0, done.stderr


def test_subtitles_of_the_speaker_are_in_the_language_of_the_transcript(tmp_path):
    """Be that English, by way of which French is translated."""
    model = ScriptedModel([])
    open_stream = model.open

    def open_through(source, target, **wanted):
        stream = open_stream(source, target, **wanted)
        stream.through = "en" if source == "fr" else None
        return stream

    model.open = open_through
    captions = CaptionFiles((), tmp_path / "a.srt", None, resume=False)
    dub = Dub(None, tmp_path / "film.mkv", None, None)
    recording = Recording("talk.mkv", captions, None, dub)
    for source, language in (("fr", "en"), ("es", "es"), (None, "")):
        film = recording.film(System(Setup(source=source, target="de"), model), Part())
        assert film.captions == ((tmp_path / "a.srt", language),)
