"""The laboratory on a Ray cluster: what one process gives, and a killed run goes on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from dragoman.cli.app import dragoman
from dragoman.cluster import connect
from dragoman.errors import DragomanError
from dragoman.trace import read_traces

ROOT = Path(__file__).parents[1]
CLIPS = 10
SYSTEM = ("--from", "de", "--step", "500")
START = 300  # seconds, on a machine that has much else to do

HEAD = """
import ray
ray.init("local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
print(ray.get_runtime_context().gcs_address, flush=True)
input()
"""


@pytest.fixture(scope="module")
def head():
    """A cluster with two workers, and its address."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'dragoman[cluster]'")
    process = next(filter(None, (_started() for _ in range(3))), None)
    if process is None:
        pytest.skip("Ray itself did not start in three attempts: the machine is too busy for it")
    yield process.address
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()
    process.communicate("end\n", timeout=60)


def _started():
    """A process with a cluster; None: Ray has given up, as it does early on a busy machine."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    late = threading.Timer(START, process.kill)
    late.start()
    process.address = process.stdout.readline().strip()
    late.cancel()
    if process.address:
        return process
    process.communicate()
    return None


@pytest.fixture
def corpus(tmp_path):
    """A folder with a corpus."""
    lines = ["audio\tde\ten"]
    for index in range(CLIPS):
        path = tmp_path / f"{index}.wav"
        soundfile.write(path, np.zeros(16000 * (index % 3 + 2), np.float32), 16000)
        lines.append(f"{path}\twort\tword0 word1")
    (tmp_path / "corpus.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path


def plain(path):
    """Traces without the time that the work took."""
    traces = sorted(read_traces(path), key=lambda trace: trace.index)
    for trace in traces:
        trace.hearings = [replace(heard, start_ms=0.0, end_ms=0.0) for heard in trace.hearings]
    return traces


def typed(*arguments):
    """A command, in this process; its output."""
    done = CliRunner().invoke(dragoman, [str(word) for word in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_run_that_was_killed_goes_on_with_the_same_words(head, corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    typed("evaluate", "corpus.tsv", *SYSTEM, "--model", "tests.scripted:steady", "--policy",
          "greedy", "--output", "here")  # fmt: skip
    there = corpus / "there" / "traces.jsonl"
    command = [sys.executable, "-m", "dragoman", "evaluate", "corpus.tsv", *SYSTEM]
    command += ["--model", "tests.gated:gated", "--policy", "greedy"]
    command += ["--output", "there", f"--cluster={head}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    killed = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + START
        while not there.exists() or b'"end"' not in there.read_bytes():
            assert killed.poll() is None, killed.stderr.read().decode()
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        killed.kill()
        killed.communicate()
    done = list(read_traces(there, unfinished=False))  # with the time that it took, which tells
    assert 1 <= len(done) < CLIPS
    (corpus / "go").touch()
    again = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
    assert again.returncode == 0, again.stderr
    after = {trace.index: trace for trace in read_traces(there)}
    assert [after[trace.index] for trace in done] == done  # nothing was done again
    assert [trace.index for trace in plain(there)] == list(range(CLIPS))
    assert plain(there) == plain(corpus / "here" / "traces.jsonl")


def test_sweep_and_tune_give_what_one_process_gives(head, corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    policies = ("--policies", "wait-k:k=1|2", "--model", "tests.scripted:steady")
    folders = [("here", ()), ("there", (f"--cluster={head}",))]
    for folder, where in folders:
        typed("sweep", "corpus.tsv", folder, *SYSTEM[:2], *policies, *where)
        typed("tune", "corpus.tsv", f"{folder}.yaml", *SYSTEM[:2], *policies, *where,
              "--steps", "500ms", "--max-latency", "4s", "--runs", f"{folder}.runs")  # fmt: skip
    assert Path("here.yaml").read_text() == Path("there.yaml").read_text()
    for runs in ("", ".runs"):
        ours = sorted(Path(f"here{runs}").glob("*/traces.jsonl"))
        assert len(ours) == 2
        for path in ours:
            assert plain(path) == plain(Path(f"there{runs}", *path.parts[1:]))


def test_voice_gives_the_same_bytes(head, tmp_path, monkeypatch):
    pytest.importorskip("espeakng_loader")
    from dragoman.train.voicing import corpus

    monkeypatch.setattr(corpus, "ROWS_PER_SHARD", 2)
    monkeypatch.chdir(tmp_path)
    rows = [f"This is sentence {number}.\tDas ist Satz {number}." for number in range(6)]
    Path("text.tsv").write_text("\n".join(["en\tde", *rows]), encoding="utf-8")
    typed("voice", "text.tsv", "here", "--jobs", "1")
    typed("voice", "text.tsv", "there", f"--cluster={head}")
    ours, theirs = ({p.name: p.read_bytes() for p in Path(f).iterdir()} for f in ("here", "there"))
    assert len(ours) > 6
    assert ours == theirs


@pytest.mark.parametrize("command", [["evaluate", "corpus.tsv"], ["serve", "--replicas", "1"]])
def test_an_error_of_a_worker_is_its_sentence(command, head, corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    options = [*SYSTEM, "--model", "tests.scripted:nobody", f"--cluster={head}"]
    done = CliRunner().invoke(dragoman, [*command, *options])
    assert isinstance(done.exception, DragomanError)
    assert str(done.exception).startswith("There is no model function 'tests.scripted:nobody'")
    assert "\n" not in str(done.exception)


@pytest.mark.parametrize(
    ("command", "more", "sentence"),
    [
        (["evaluate", "corpus.tsv"], ["--device", "cuda"], "0 of 1 workers with 1 core and a GPU"),
        (["serve", "--port", "0"], ["--threads", "2"], "1 of 3 workers with 2 cores each"),
    ],
)
def test_what_no_machine_has_is_not_waited_for(command, more, sentence, head, corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    options = [*SYSTEM, "--model", "tests.scripted:steady", f"--cluster={head}", *more]
    done = CliRunner().invoke(dragoman, [*command, *options])
    assert f"The cluster has room for {sentence}" in str(done.exception)


# --- what needs no Ray -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["corpus.tsv", "a:b", "host:99999", "http://host:1", "ray://host:1", ""]
)
def test_what_is_no_address_is_told(address):
    with pytest.raises(DragomanError, match="no address of a cluster"):
        connect(address)


@contextmanager
def answering(answer):
    """An address at which somebody says something, or nothing, to the first that comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            there, _ = server.accept()
            with there:
                there.recv(100)
                there.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n", b""])
def test_another_server_is_told(answer):
    with answering(answer) as address, pytest.raises(DragomanError, match="is no Ray cluster"):
        connect(address)


def test_nobody_there_is_told():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(DragomanError, match=r"No cluster answers .*ray start --head"):
        connect(f"127.0.0.1:{port}")


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DragomanError, match=r"pip install 'dragoman\[cluster\]'"):
        connect("local")


def test_processes_or_a_cluster(corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    for command in (["evaluate", "corpus.tsv"], ["voice", "corpus.tsv", "out"]):
        done = CliRunner().invoke(dragoman, [*command, "--jobs", "2", "--cluster"])
        assert "give one of them" in str(done.exception)
