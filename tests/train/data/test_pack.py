"""Packs: what goes in comes out; damage and a full disk are sentences, nothing is half-written."""

import errno
import os
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.files import whole_file, write_whole
from dragoman.train.data.faults import FAULTS, Fault, Faults, read_faults
from dragoman.train.data.pack import Pack, ShardWriter, finished_shard, read_header
from dragoman.train.data.packing import hours_there
from dragoman.workers import one_thread
from tests.train.conftest import make_pack


@pytest.mark.parametrize("codec", ["pcm", "flac", "opus"])
def test_sound_comes_back(codec, tmp_path):
    pack = Pack(make_pack(tmp_path / codec, 5, codec=codec))
    plain = Pack(make_pack(tmp_path / "plain", 5))
    for number in range(5):
        ours, wanted = pack.sound(number), plain.sound(number)
        assert ours.dtype == np.int16
        assert ours.shape == wanted.shape
        if codec == "opus":
            both = np.corrcoef(ours.astype(float), wanted.astype(float))[0, 1]
            assert both > 0.95
        else:
            np.testing.assert_array_equal(ours, wanted)


def test_damaged_packs_are_sentences(tmp_path):
    folder = make_pack(tmp_path / "pack", 3)
    (folder / "shard-00000.pcm").rename(folder / "away")
    with pytest.raises(DragomanError, match=r"shard-00000\.pcm is missing"):
        Pack(folder)
    (folder / "away").rename(folder / "shard-00000.pcm")
    lines = (folder / "shard-00000.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "shard-00000.jsonl").write_bytes(b"".join(lines[1:]))
    with pytest.raises(DragomanError, match="holds 2 items where"):
        Pack(folder)
    (folder / "shard-00000.jsonl").write_bytes(b"".join([b"{oops\n", *lines[1:]]))
    with pytest.raises(DragomanError, match="is damaged"):
        Pack(folder)
    (folder / "shard-00000.jsonl").write_bytes(b"".join(lines))
    sound = (folder / "shard-00000.pcm").read_bytes()
    (folder / "shard-00000.pcm").write_bytes(sound[:-1])
    with pytest.raises(DragomanError, match="shorter than its index says"):
        Pack(folder)
    (folder / "pack.json").write_text("{")
    with pytest.raises(DragomanError, match="cannot be read"):
        read_header(folder)
    (folder / "pack.json").unlink()
    with pytest.raises(DragomanError, match="unfinished"):
        read_header(folder)


def test_damage_inside_is_named(tmp_path):
    folder = make_pack(tmp_path / "pack", 3, codec="flac")
    sound = folder / "shard-00000.flac"
    sound.write_bytes(bytes(200) + sound.read_bytes()[200:])
    with pytest.raises(DragomanError, match=r"item 0 in .*pack cannot be decoded"):
        Pack(folder).sound(0)
    assert len(Pack(folder).sound(1)) > 0
    (folder / FAULTS).write_text("oops")
    with pytest.raises(DragomanError, match=r"faults.jsonl is damaged"):
        read_faults(folder / FAULTS)
    index = folder / "shard-00000.jsonl"
    assert finished_shard(folder, 0).items == 3
    index.write_bytes(index.read_bytes()[:-9])
    assert finished_shard(folder, 0) is None  # so it is made again


def test_hours_are_those_of_finished_shards_whatever_else_lies_there(tmp_path):
    folder = make_pack(tmp_path / "pack", 3)
    hours = read_header(folder).hours
    assert hours_there(folder) == hours > 0
    for name in ("shard-foo.jsonl", "shard-0.jsonl", "shard--1.jsonl"):
        (folder / name).write_bytes((folder / "shard-00000.jsonl").read_bytes())
    (folder / "shard-00001.jsonl").write_text("half a li")
    assert hours_there(folder) == hours
    assert hours_there(tmp_path / "none") == 0


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("dragoman.files.os.fsync", full)
    with pytest.raises(DragomanError, match=r"Cannot write .*the disk is full; make room"):
        ShardWriter(tmp_path, 0, "pcm").write([])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_archives_on_a_full_disk_are_a_sentence_too(tmp_path, monkeypatch):
    """A device that is always full, where the temporary file would be opened."""

    def full(*_, **__):
        return Path("/dev/full").open("wb")

    monkeypatch.setattr("dragoman.files.open", full, raising=False)
    big = torch.zeros(100_000)
    for write in (partial(torch.save, big), partial(np.savez, big=big.numpy())):
        with pytest.raises(DragomanError, match="the disk is full; make room"):
            write_whole(tmp_path / "archive", write)


def test_places_that_cannot_be_written_are_sentences(tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(DragomanError, match="a file where a folder should be"):
        ShardWriter(tmp_path / "file" / "pack", 0, "pcm").write([])
    with pytest.raises(DragomanError, match="that name is too long"):
        write_whole(tmp_path / ("long" * 100), lambda stream: None)


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(TypeError), whole_file(path) as stream:
        stream.writelines(["new", None])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_faults_stop_at_their_limit_and_name_examples():
    faults = Faults(limit=0.1)
    faults.seen(1000)
    faults.add(Fault("empty text", f"row {n}", "x") for n in range(100))
    with pytest.raises(DragomanError, match="101 of 1000 items are faulty, more than the limit"):
        faults.add([Fault("corrupt recording", "clip 7", "y")])
    assert faults.summary() == "100 empty text, 1 corrupt recording"
    strict = Faults(limit=0.005)
    with pytest.raises(DragomanError, match=r"more than the limit of 0\.5%"):
        strict.add(Fault("empty text", f"row {n}", "x") for n in range(21))


def test_worker_processes_compute_with_one_thread_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    with one_thread():
        told = [os.environ[name] for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")]
        workers = get_context("spawn").Pool(1)
    with workers:
        assert workers.map(os.getenv, ["OMP_NUM_THREADS", "MKL_NUM_THREADS"]) == told
    assert told == ["1", "3"]
    assert "OMP_NUM_THREADS" not in os.environ
