"""`get`: sources in order, damage noticed, processes that ask at once, and no network at all."""

import os
import subprocess
import sys
import threading

import pytest

from dragoman.errors import DragomanError
from dragoman.store import find, get

FILES = {"model.bin": b"weights " * 40_000, "config.json": b"{}"}
GET_TOY = [sys.executable, "-c", "from dragoman.store import get; print(get('toy'))"]


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def put(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def test_from_the_hub(enter, hub, home):
    enter("toy", FILES, hub=hub(FILES))
    assert find("toy") is None
    assert get("toy") == home / "models" / "toy" == find("toy")
    assert contents(get("toy")) == FILES
    assert not (home / "partial" / "toy").exists()


def test_files_alike_and_an_empty_one_from_the_hub(enter, hub):
    files = {"a": b"alike", "b": b"alike", "c": b""}
    enter("toy", files, hub=hub(files))
    assert contents(get("toy")) == files


def test_the_second_time_nobody_is_asked(enter, hub, server):
    enter("toy", FILES, hub=hub(FILES))
    get("toy")
    asked = len(server.asked)
    get("toy")
    assert len(server.asked) == asked


def test_a_present_model_needs_nothing_heavy(enter, hub):
    """What makes `get` quick: no YAML, no network library, no progress bar, no lock."""
    enter("toy", FILES, hub=hub(FILES))
    get("toy")
    code = (
        "import sys; from dragoman.store import get; get('toy');"
        "print({'yaml', 'msgspec', 'rich', 'urllib.request', 'filelock'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_folder_comes_before_the_hub(enter, hub, server, tmp_path, monkeypatch):
    enter("toy", FILES, hub=hub(FILES))
    put(tmp_path / "disk" / "toy", FILES)
    monkeypatch.setenv("DRAGOMAN_WEIGHTS", os.pathsep.join(["/nowhere", str(tmp_path / "disk")]))
    assert contents(get("toy")) == FILES
    assert server.asked == []


def test_the_hub_fills_in_what_a_folder_lacks(enter, hub, server, tmp_path, monkeypatch):
    enter("toy", FILES, hub=hub(FILES))
    put(tmp_path / "disk" / "toy", {"config.json": FILES["config.json"], "model.bin": b"wrong"})
    monkeypatch.setenv("DRAGOMAN_WEIGHTS", str(tmp_path / "disk"))
    assert contents(get("toy")) == FILES
    assert [path for path, _ in server.asked] == ["/team/toy/resolve/r1/model.bin"]


def test_what_the_hubs_own_client_fetched_is_used(enter, hub, server, tmp_path):
    enter("toy", FILES, hub=hub(FILES))
    put(tmp_path / "hub-client" / "hub" / "models--team--toy" / "snapshots" / "r1", FILES)
    assert contents(get("toy")) == FILES
    assert server.asked == []


def test_a_linked_file_that_goes_away_is_fetched(enter, hub, tmp_path, monkeypatch):
    enter("toy", FILES, hub=hub(FILES))
    put(tmp_path / "disk" / "toy", FILES)
    monkeypatch.setenv("DRAGOMAN_WEIGHTS", str(tmp_path / "disk"))
    get("toy")
    (tmp_path / "disk" / "toy" / "model.bin").unlink()
    assert find("toy") is None
    assert contents(get("toy")) == FILES


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_file_is_fetched_again(enter, hub, server, damage):
    enter("toy", FILES, hub=hub(FILES))
    weights = get("toy") / "model.bin"
    if damage == "gone":
        weights.unlink()
    else:
        weights.write_bytes(b"x" * (100 if damage == "cut" else len(FILES["model.bin"])))
        os.utime(weights, ns=(0, 0))
    server.asked.clear()
    assert contents(get("toy")) == FILES
    assert [path for path, _ in server.asked] == ["/team/toy/resolve/r1/model.bin"]


def test_a_catalogue_that_changed_is_obeyed(enter, hub):
    enter("toy", FILES, hub=hub(FILES))
    get("toy")
    renewed = {"model.bin": b"new weights"}
    enter("toy", renewed, hub=hub(renewed))
    assert find("toy") is None
    assert contents(get("toy")) == renewed  # and the file that is no longer named is gone


def test_a_file_with_the_wrong_hash_is_refused(enter, hub, home):
    enter("toy", FILES, hub=hub({**FILES, "model.bin": FILES["model.bin"].upper()}))
    with pytest.raises(DragomanError, match=r"toy/model\.bin is not the file .*sha256"):
        get("toy")
    assert not (home / "models" / "toy" / "model.bin").exists()


def test_no_network_and_no_weights_says_what_to_do(enter):
    enter("toy", FILES, hub={"repository": "team/toy", "revision": "r1"})
    with pytest.raises(DragomanError) as caught:
        get("toy")
    told = str(caught.value)
    assert told.startswith("cannot get the model 'toy': toy/model.bin: no connection (")
    assert "put model.bin, config.json into a folder 'toy'" in told
    assert "DRAGOMAN_WEIGHTS" in told


def test_what_comes_with_a_clone_alone_says_so(enter):
    enter("toy", FILES)
    with pytest.raises(DragomanError, match="comes with a clone of Dragoman; type 'dragoman model"):
        get("toy")


def test_offline_is_respected(enter, hub, server, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    enter("toy", FILES, hub=hub(FILES))
    with pytest.raises(DragomanError, match="HF_HUB_OFFLINE"):
        get("toy")
    assert server.asked == []


def test_a_store_that_cannot_be_written_is_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "file"))
    with pytest.raises(DragomanError, match=r"cannot be used .* DRAGOMAN_HOME"):
        get("silero-vad")


def test_a_path_is_taken_as_it_is(tmp_path):
    assert get(str(tmp_path)) == tmp_path
    with pytest.raises(DragomanError, match="there is no model folder"):
        get(str(tmp_path / "nothing"))


def test_two_processes_at_once_fetch_once(enter, hub, server):
    enter("toy", FILES, hub=hub(FILES))
    server.wait = threading.Event()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    first = subprocess.Popen(GET_TOY, **pipes)
    server.half_way.wait()
    second = subprocess.Popen(GET_TOY, **pipes)
    assert "Another process is working on toy" in second.stderr.readline()
    server.wait.set()
    told = [process.communicate()[0] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0]
    assert told[0] == told[1] == f"{find('toy')}\n"
    assert contents(get("toy")) == FILES
    assert len(server.asked) == len(FILES)


def test_a_killed_process_leaves_a_download_that_continues(enter, hub, server, home):
    enter("toy", FILES, hub=hub(FILES))
    server.wait = threading.Event()
    killed = subprocess.Popen(GET_TOY, stderr=subprocess.DEVNULL)
    server.half_way.wait()
    half = len(FILES["model.bin"]) // 2
    partials = home / "partial" / "toy"
    while not any(path.stat().st_size for path in partials.glob("*")):
        assert killed.poll() is None
    killed.kill()
    killed.wait()
    assert find("toy") is None
    (have,) = (path.stat().st_size for path in partials.glob("*"))
    server.wait.set()
    server.wait = None
    assert contents(get("toy")) == FILES
    assert 0 < have <= half
    assert ("/team/toy/resolve/r1/model.bin", f"bytes={have}-") in server.asked
