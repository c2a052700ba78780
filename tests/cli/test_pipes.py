"""A pipe is live: heard as it comes, caught up with, its lag what a listener lived through."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import threading
import time
from array import array
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
RAW = ("--raw", "s16le:16000:1")
SECONDS = 6


def piped(*args, model="tests.talkers:slow", **options):
    command = ["translate", "-", *RAW, "--model", model, "--step", "500ms", "--policy", "greedy"]
    return subprocess.Popen(
        [sys.executable, "-m", "dragoman", *command, "--from", "de", *map(str, args)], cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


def speak(process, seconds, block=0.1):
    """Write sound at the speed of speech."""
    sound = np.zeros(round(16000 * block), "<i2").tobytes()
    process.stdin.write(sound)
    process.stdin.flush()
    _await_reader(process)  # however long a busy machine needs to begin
    began = time.monotonic() - block
    for number in range(2, round(seconds / block) + 1):
        time.sleep(max(0.0, began + number * block - time.monotonic()))
        process.stdin.write(sound)
        process.stdin.flush()


def _await_reader(process):
    """Until all that was written has been read."""
    left = array("i", [1])
    while left[0]:
        assert process.poll() is None, "the process has ended"
        time.sleep(0.01)
        fcntl.ioctl(process.stdin.fileno(), termios.FIONREAD, left)


def hearings(trace):
    """(audio, arrival, start, end) of every chunk."""
    rows = map(json.loads, trace.read_text().splitlines())
    return [row["heard"] for row in rows if "heard" in row]


def ended(process):
    process.stdin.close()
    out, err = process.stdout.read().decode(), process.stderr.read().decode()
    assert process.wait() == 0, err
    return out, err


def test_a_slow_machine_catches_up_and_tells_the_lag_that_was_lived_through(tmp_path):
    """1.2 s of work for each half second: step by step it would end 8 s behind."""
    trace = tmp_path / "t.jsonl"
    process = piped("--json", "--trace", trace)
    speak(process, SECONDS)
    out, err = ended(process)
    rows = [json.loads(line) for line in out.splitlines()]
    heard = hearings(trace)
    lengths = np.diff([0, *(audio for audio, *_ in heard)])
    assert max(lengths) >= 1000  # what waited was heard as one
    behind = [end - arrival for _, arrival, _, end in heard]
    assert max(behind) < 5000
    assert min(behind) >= 1200
    # The stamps are of the sound's arrival: after it was written, at the speed of speech.
    offset = heard[0][1] - heard[0][0]
    assert all(abs(arrival - audio - offset) < 1000 for audio, arrival, *_ in heard[:-1])
    said = [row["lag_ms"] for row in rows if row["said"]]
    summary = float(re.search(r"on average ([\d.]+) s behind", err)[1])
    assert 1.2 <= summary <= 5
    assert min(said) >= 1200
    # Which of the two depends on how much had come when it looked, on a busy machine above all.
    assert re.search("This machine (is too slow for|hardly keeps up with) the setting", err)
    assert "Try --step 1s" in err  # beside a policy there is no "--max-latency auto"


def test_a_machine_that_keeps_up_hears_equal_steps(tmp_path):
    trace = tmp_path / "t.jsonl"
    process = piped("--trace", trace, model="tests.talkers:sentences")
    speak(process, 3)
    _, err = ended(process)
    heard = hearings(trace)
    assert "too slow" not in err
    assert [audio for audio, *_ in heard][-1] == 3000
    assert float(re.search(r"on average ([\d.]+) s behind", err)[1]) < 1.5


def test_sound_that_came_while_the_model_was_loading_is_late(tmp_path):
    trace = tmp_path / "t.jsonl"
    process = piped("--trace", trace, model="tests.scripted:slow_to_load")
    speak(process, 1)
    ended(process)
    heard = hearings(trace)
    assert heard[0][2] - heard[0][1] > 1000


def test_ctrl_c_ends_a_pipe_on_which_nothing_comes():
    process = piped(model="tests.talkers:sentences")
    speak(process, 1.7)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    closing = threading.Timer(60, process.kill)  # instead of waiting for ever
    closing.start()
    out, err = process.communicate()
    closing.cancel()
    assert process.returncode == 0, err
    assert out.decode().split()[:4] == ["This", "is", "the", "first"]
    assert b"words from 1.7 s" in err  # what was heard of a step is not lost
    assert b"Fatal" not in err
    assert b"Traceback" not in err


def test_ctrl_c_on_a_pipe_of_another_rate_tells_of_no_leaks():
    """The thread that waits for the pipe has what resamples, whose binding complains of that."""
    process = piped("--raw", "s16le:48000:1", model="tests.talkers:sentences")
    speak(process, 3.0)  # a second of it
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(60) == 0
    finally:
        process.kill()
    err = process.stderr.read().decode()
    assert "words from" in err
    assert "nanobind" not in err
    process.communicate()


def test_a_named_pipe_is_live_too(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "translate", str(pipe), *RAW, "--model",
         "tests.talkers:sentences", "--policy", "greedy", "--step", "500ms", "--from", "de"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with pipe.open("wb") as file:
        file.write(np.zeros(16000 * 2, "<i2").tobytes())
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert out.decode().endswith("It ends.\n")
