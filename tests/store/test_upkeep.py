"""Verify in full, add a folder of one's own, and take a model away."""

import os

import pytest

from dragoman.errors import DragomanError
from dragoman.store import catalogue, find, get, shelf
from dragoman.store.prepared import prepared

FILES = {"model.bin": b"weights", "voices/a.bin": b"a"}
ABOUT = {"about": "mine", "task": "translation", "languages": ("de",), "licence": "MIT"}


@pytest.fixture
def toy(enter, hub):
    enter("toy", FILES, hub=hub(FILES))
    return get("toy")


def spoil(path):
    """Change a file so that neither its size nor its time tells of it."""
    seen = path.stat()
    path.write_bytes(b"?" * seen.st_size)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def test_a_sound_model_has_no_faults(toy):
    assert shelf.verify("toy") == []
    assert find("toy") == toy


def test_damage_that_only_a_full_read_shows(toy):
    spoil(toy / "model.bin")
    assert find("toy") == toy  # the quick look cannot see it
    assert shelf.verify("toy") == ["model.bin is damaged"]
    assert find("toy") is None  # but now it is known
    assert (get("toy") / "model.bin").read_bytes() == b"weights"


def test_missing_and_foreign_files_are_told(toy):
    (toy / "voices" / "a.bin").unlink()
    (toy / "voices" / "b.bin").write_bytes(b"b")
    expected = ["voices/a.bin is missing", "voices/b.bin does not belong to it"]
    assert shelf.verify("toy") == expected
    get("toy")
    assert shelf.verify("toy") == []


def test_remove(toy, home):
    assert shelf.is_here("toy")
    made = prepared(toy, "kind", 1, lambda folder: (folder / "made").write_text("of it"))
    assert made.exists()
    shelf.remove("toy")
    assert not toy.exists()
    assert not made.exists()
    assert not list((home / "records").iterdir())
    with pytest.raises(DragomanError, match="there is no model 'toy'"):
        get("toy")  # it was added by the user, so it is forgotten altogether


@pytest.mark.parametrize("there", [True, False])
def test_a_model_that_was_moved_to_another_disk_and_linked_is_removed(toy, tmp_path, there):
    elsewhere = tmp_path / "elsewhere"
    toy.rename(elsewhere if there else tmp_path / "lost")
    toy.symlink_to(elsewhere)
    shelf.remove("toy")
    assert not toy.is_symlink()
    assert elsewhere.exists() == there


def test_remove_what_is_not_here():
    with pytest.raises(DragomanError, match="'silero-vad' is not in the store"):
        shelf.remove("silero-vad")


@pytest.fixture
def own(tmp_path):
    folder = tmp_path / "own"
    (folder / "deep").mkdir(parents=True)
    (folder / "model.bin").write_bytes(b"my weights")
    (folder / "deep" / "note").write_bytes(b"note")
    return folder


def test_a_folder_of_ones_own(own):
    added = shelf.add("mine", own, **ABOUT)
    assert catalogue.model("mine") == added
    folder = get("mine")
    assert (folder / "model.bin").read_bytes() == b"my weights"
    assert (folder / "deep" / "note").read_bytes() == b"note"
    shelf.remove("mine")
    assert (own / "model.bin").exists()  # the user's own file is never touched


def test_a_folder_of_ones_own_that_changes_is_noticed(own):
    shelf.add("mine", own, **ABOUT)
    get("mine")
    (own / "model.bin").write_bytes(b"new weights")
    with pytest.raises(DragomanError, match=r"own/model\.bin is not the file"):
        get("mine")
    shelf.add("mine", own, **ABOUT)
    assert (get("mine") / "model.bin").read_bytes() == b"new weights"


@pytest.mark.parametrize("name", ["../evil", "a b", "", ".hidden", "a/b"])
def test_a_name_that_cannot_be_a_file_name(own, name):
    with pytest.raises(DragomanError, match="cannot name a model"):
        shelf.add(name, own, **ABOUT)


def test_a_name_that_is_taken(own):
    with pytest.raises(DragomanError, match="choose another name"):
        shelf.add("whisper-base", own, **ABOUT)


def test_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DragomanError, match="holds no files"):
        shelf.add("mine", tmp_path / "empty", **ABOUT)
