"""Outputs that cannot be written, or that are inputs, are told before any work."""

import os
from pathlib import Path

import pytest

from dragoman.cli.outputs import check_folder, check_outputs
from dragoman.errors import DragomanError


def test_a_file_that_can_be_written_is_left_as_it_is(tmp_path):
    path = tmp_path / "new" / "best.yaml"
    check_outputs([], [path])
    assert not path.exists()
    path.write_text("kept")
    check_outputs([None, tmp_path / "other"], [path, None])
    assert path.read_text() == "kept"
    assert os.listdir(path.parent) == ["best.yaml"]


def test_outputs_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DragomanError, match="there is a folder of that name"):
        check_outputs([], [tmp_path])
    with pytest.raises(DragomanError, match="there is a file where a folder should be"):
        check_outputs([], [tmp_path / "file" / "best.yaml"])
    with pytest.raises(DragomanError, match="there is a file where a folder should be"):
        check_folder(tmp_path / "file")
    with pytest.raises(DragomanError, match="Cannot write"):
        check_folder(Path("/proc/nowhere"))


def test_devices(tmp_path):
    (tmp_path / "link").symlink_to("/dev/full")
    for full in (Path("/dev/full"), tmp_path / "link"):
        with pytest.raises(DragomanError, match=f"Cannot write {full}: the disk is full"):
            check_outputs([], [full])
    check_outputs([], [Path("/dev/null")])


def test_no_output_is_an_input(tmp_path):
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text("")
    (tmp_path / "link").symlink_to(corpus)
    os.link(corpus, tmp_path / "hard")
    for path in (corpus, tmp_path / "link", tmp_path / "hard", tmp_path / "." / "corpus.tsv"):
        with pytest.raises(DragomanError, match="is read by this command"):
            check_outputs([None, corpus], [path])
