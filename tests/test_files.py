"""Files that are whole or not there: what is left by an error, a full disk, a killed process."""

import errno
import os
import platform
import subprocess
import sys
import time

import pytest

from dragoman import files
from dragoman.errors import DragomanError
from dragoman.files import (
    digest_of_ends,
    sweep,
    temporary_for,
    whole_file,
    whole_folder,
    write_whole,
)
from dragoman.setup import Setup


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "folder" / "a.txt"
    with whole_file(path) as file:
        file.write("grüß ")
        file.flush()
        assert not path.exists()
        file.write("dich")
    assert path.read_text(encoding="utf-8") == "grüß dich"
    assert os.listdir(path.parent) == ["a.txt"]


def test_a_folder_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "models" / "a"
    with whole_folder(path) as folder:
        (folder / "part").write_text("whole")
        assert not path.exists()
    assert (path / "part").read_text() == "whole"
    assert os.listdir(path.parent) == ["a"]


def test_a_folder_that_was_not_completed_leaves_nothing_and_takes_along_what_the_killed_left(
    tmp_path,
):
    """Half a model takes room, and nobody would look for it: its name is hidden."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = tmp_path / f".b.0.{dead.pid}.tmp"
    left.mkdir()
    (left / "part").write_text("half")

    def fail_half_way(folder):
        (folder / "part").write_text("half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "a") as folder:
        fail_half_way(folder)
    assert os.listdir(tmp_path) == []


def test_a_link_stays_one_and_leads_to_what_is_written(tmp_path):
    target, link = tmp_path / "shared" / "a.txt", tmp_path / "link.txt"
    target.parent.mkdir()
    link.symlink_to(target)
    for text in ("new", "newer"):  # the first time it leads nowhere yet
        with whole_file(link) as file:
            file.write(text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert os.listdir(target.parent) == ["a.txt"]


def test_two_may_write_a_file_at_once_and_each_version_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    with whole_file(path) as slow:
        slow.write("slow ")
        slow.flush()
        with whole_file(path) as quick:
            quick.write("quick")
        assert path.read_text() == "quick"
        slow.write("and long")
    assert path.read_text() == "slow and long"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def fail_half_way(stream):
        stream.write(b"new")
        stream.flush()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), whole_file(path, "wb") as file:
        fail_half_way(file)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_the_data_is_on_the_disk_before_the_name(tmp_path, monkeypatch):
    done = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(files.os, "fsync", lambda number: (done.append("sync"), sync(number)))
    monkeypatch.setattr(files.os, "replace", lambda *names: (done.append("name"), replace(*names)))
    write_whole(tmp_path / "a", lambda stream: stream.write(b"data"))
    assert done == ["sync", "name"]
    assert (tmp_path / "a").read_bytes() == b"data"


@pytest.mark.parametrize(
    ("number", "sentence"),
    [(errno.ENOSPC, "the disk is full; make room"), (errno.EROFS, "is read-only; choose another")],
)
def test_a_disk_that_refuses_is_a_sentence(tmp_path, monkeypatch, number, sentence):
    path = tmp_path / "setup.yaml"
    Setup().write(path)
    before = path.read_bytes()

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "replace", refuse)
    with pytest.raises(DragomanError, match=f"Cannot write {path}: .*{sentence}"):
        Setup(model="other").write(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["setup.yaml"]


def test_a_file_where_a_folder_should_be(tmp_path):
    (tmp_path / "a").write_text("file")
    with (
        pytest.raises(DragomanError, match="a file where a folder should be"),
        whole_file(tmp_path / "a" / "b"),
    ):
        pass


def test_what_the_killed_left_is_swept_and_what_the_living_write_is_not(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    mine = temporary_for(tmp_path / "b")
    theirs = tmp_path / f".a.0.{dead.pid}.tmp"
    others = [tmp_path / name for name in ("notes.tmp", ".notes.tmp", ".tmp", ".a.b.tmp")]
    for path in (mine, theirs, *others):
        path.write_text("half")
    sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(path.name for path in (mine, *others))


@pytest.mark.parametrize("when", ["{pid}", "1.20261119170437"])
def test_what_somebody_else_has_named_alike_is_not_swept(tmp_path, when):
    """A year, or a moment, as other programs put into the names of their own temporary files."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    path = tmp_path / f".report.{when.format(pid=dead.pid)}.tmp"
    path.write_text("theirs")
    sweep(tmp_path)
    assert path.read_text() == "theirs"


def test_what_another_machine_writes_is_swept_only_once_it_is_old(tmp_path, monkeypatch):
    """Its processes have numbers that mean nothing here, or somebody else."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = []
    for machine in ("one", "two"):
        files._here.cache_clear()
        monkeypatch.setattr(platform, "node", lambda name=machine: name)
        monkeypatch.setattr(os, "getpid", lambda: dead.pid)
        names += [temporary_for(tmp_path / "a"), temporary_for(tmp_path / "b")]
    for name in names:
        name.write_text("half")
    os.utime(names[0], (0, 0))
    half_a_day_ago = time.time() - 12 * 3600
    os.utime(names[1], (half_a_day_ago, half_a_day_ago))
    sweep(tmp_path)  # on the second
    files._here.cache_clear()
    assert [path for path in names if path.exists()] == [names[1]]


@pytest.mark.parametrize("name", ["a" * 255, "ü" * 127])
def test_a_name_may_be_as_long_as_the_disk_takes(tmp_path, name):
    with whole_file(tmp_path / name) as stream:
        stream.write("whole")
    assert os.listdir(tmp_path) == [name]


def test_what_somebody_else_writes_is_not_swept(tmp_path, monkeypatch):
    def forbidden(*_):
        raise PermissionError

    monkeypatch.setattr(files.os, "kill", forbidden)
    (tmp_path / ".a.0.1.tmp").write_text("half")
    sweep(tmp_path)
    assert os.listdir(tmp_path) == [".a.0.1.tmp"]


def test_a_device_or_a_pipe_is_written_as_it_is(tmp_path):
    """A file in its place would be the end of it: /dev/null has been lost that way."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(pipe) as file:
            file.write("through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_files_are_told_apart_by_their_ends(tmp_path, monkeypatch):
    """The middle of two gigabytes of weights, or of a talk of hours, is not read."""
    monkeypatch.setattr(files, "_LOOKED_AT", 4)

    def digest(content):
        (tmp_path / "a").write_bytes(content)
        return digest_of_ends(tmp_path / "a")

    assert digest(b"abcd....wxyz") == digest(b"abcd-----wxyz")
    apart = (b"abcd....wxyz", b"abcD....wxyz", b"abcd....Wxyz", b"abcd.wxyz.", b"abc", b"")
    assert len(set(map(digest, apart))) == len(apart)
