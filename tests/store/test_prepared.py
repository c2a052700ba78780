"""Folders that are made of a model's files once."""

import errno
from pathlib import Path

import pytest

from dragoman.errors import DragomanError
from dragoman.store.prepared import forget, prepared, size_of


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    folder = tmp_path / "model"
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "a.onnx").write_text("weights")
    return folder


class Making:
    """Writes a file, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, folder: Path) -> None:
        self.times += 1
        (folder / "model.bin").write_text(f"made {self.times}")


def test_a_folder_is_made_once(source: Path):
    make = Making()
    first = prepared(source, "kind", 1, make)
    assert prepared(source, "kind", 1, make) == first
    assert make.times == 1
    assert (first / "model.bin").read_text() == "made 1"


def test_it_is_made_anew_when_anything_changed(source: Path):
    make = Making()
    folder = prepared(source, "kind", 1, make)
    prepared(source, "kind", 2, make)  # another way of making
    assert make.times == 2
    (source / "onnx" / "a.onnx").write_text("other weights")
    prepared(source, "kind", 2, make)
    assert make.times == 3
    (folder / "model.bin").write_text("damaged here")
    prepared(source, "kind", 2, make)
    assert make.times == 4
    (folder / "model.bin").unlink()
    prepared(source, "kind", 2, make)
    assert (make.times, (folder / "model.bin").read_text()) == (5, "made 5")


def test_what_failed_is_not_there(source: Path, tmp_path: Path):
    def fail(folder: Path) -> None:
        (folder / "model.bin").write_text("half")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        prepared(source, "kind", 1, fail)
    assert not list((tmp_path / "home" / "prepared").rglob("model.bin"))  # nor a part of it
    make = Making()
    folder = prepared(source, "kind", 1, make)
    assert (folder / "model.bin").read_text() == "made 1"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_of_a_store_that_nobody_may_write_to_it_is_made_for_each_process(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """A model that an administrator fetched for all could not be loaded by anybody."""

    def mkdir(path: Path, **_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    make = Making()
    with monkeypatch.context() as store:
        store.setattr(Path, "mkdir", mkdir)
        folder = prepared(source, "kind", 1, make)
        assert prepared(source, "kind", 1, make) == folder
    assert (folder / "model.bin").read_text() == "made 1"
    assert tmp_path not in folder.parents
    assert "for this run alone" in capsys.readouterr().err


def test_a_store_without_room_is_told(source: Path, monkeypatch: pytest.MonkeyPatch):
    def mkdir(path: Path, **_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(DragomanError, match="No space left on device"):
        prepared(source, "kind", 1, Making())


def test_folders_of_the_same_name_are_kept_apart(source: Path, tmp_path: Path):
    other = tmp_path / "elsewhere" / "model"
    other.mkdir(parents=True)
    make = Making()
    assert prepared(source, "kind", 1, make) != prepared(other, "kind", 1, make)
    assert prepared(source, "kind", 1, make) != prepared(source, "other", 1, make)
    assert make.times == 3


def test_it_goes_with_the_model(source: Path):
    made = [prepared(source, kind, 1, Making()) for kind in ("one", "two")]
    forget(source)
    assert not any(folder.exists() for folder in made)


def test_its_size_is_that_of_its_files_though_some_go_away_meanwhile(source: Path):
    made = [prepared(source, kind, 1, Making()) for kind in ("one", "two")]
    (made[1] / "deeper").mkdir()
    (made[1] / "deeper" / "more").write_text("four")
    sizes = [path.stat().st_size for folder in made for path in folder.rglob("*") if path.is_file()]
    (made[0] / "gone").symlink_to("nowhere")  # like one that goes after it was listed
    assert size_of(source) == sum(sizes) > 10
