"""A pack is made by one process at a time; whoever comes later waits, or finds that it is done."""

import time
from threading import Thread

import pytest

from dragoman import __version__, versions
from dragoman.errors import DragomanError
from dragoman.files import kept
from dragoman.train.data.packing import begun
from dragoman.train.data.texts import pack_text
from tests.stuck import failing_after


class Second(Thread):
    """Somebody else who begins the same work; what came of it, or what was wrong."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.result = work, None
        self.start()

    def run(self):
        try:
            self.result = self.work()
        except DragomanError as error:
            self.result = error

    def outcome(self):
        self.join()
        return self.result


def is_told(caplog, folder):
    """Wait until somebody has been told that another one is at work."""
    while f"Another process is making the pack {folder}; waiting for it." not in caplog.text:
        time.sleep(0.01)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.tsv"
    path.write_text("en\tde\none word\tein Wort\n")
    return path


def test_the_second_of_two_is_told_to_wait_and_finds_the_pack_made(text, tmp_path, caplog):
    folder, second = tmp_path / "pack", []

    def meanwhile(items, hours):
        if not second:
            second.append(Second(lambda: pack_text(text, folder)))
            is_told(caplog, folder)

    with failing_after(60):
        header = pack_text(text, folder, progress=meanwhile)
        made = (folder / "shard-00000.jsonl").stat()
        assert second[0].outcome() == header
    assert (folder / "shard-00000.jsonl").stat() == made


def test_what_is_begun_from_something_else_meanwhile_is_refused(tmp_path, caplog):
    """Where nothing had come of it yet, it became a pack of both."""
    folder = tmp_path / "pack"

    def other():
        with begun(folder, {"text": "other"}):
            return "begun"

    with failing_after(60):
        with begun(folder, {"text": "one"}):
            second = Second(other)
            is_told(caplog, folder)
            (folder / "shard-00000.jsonl").touch()
        assert "was begun from other text or settings" in str(second.outcome())
    assert (folder / "made_from.json").read_text() == '{"text":"one"}'


def test_a_finished_pack_is_for_as_many_as_like_at_once(text, tmp_path, caplog):
    header = pack_text(text, tmp_path / "pack")
    with kept(tmp_path / "pack", lambda: None):
        assert pack_text(text, tmp_path / "pack") == header
    assert "Another process" not in caplog.text


def test_a_folder_of_something_else_is_not_touched(text, tmp_path):
    (tmp_path / "music").mkdir()
    (tmp_path / "music" / "song.mp3").touch()
    with pytest.raises(DragomanError, match="is not empty and not a pack"):
        pack_text(text, tmp_path / "music")
    assert [path.name for path in (tmp_path / "music").iterdir()] == ["song.mp3"]


def test_another_version_goes_on_with_a_pack_and_tells_so(text, tmp_path, monkeypatch, caplog):
    folder = tmp_path / "pack"
    pack_text(text, folder)
    monkeypatch.setattr(versions, "__version__", "9.9")
    pack_text(text, folder)
    assert not caplog.text  # it is made
    (folder / "pack.json").unlink()
    pack_text(text, folder)
    told = f"{folder} was begun by Dragoman {__version__} and goes on with 9.9"
    assert told in caplog.text
    assert (folder / "made_by.json").read_text() == f'["{__version__}","9.9"]'


def test_a_pack_of_which_nothing_came_is_begun_anew(tmp_path, monkeypatch, caplog):
    with begun(tmp_path / "pack", {"text": "one"}):
        pass
    monkeypatch.setattr(versions, "__version__", "9.9")
    with begun(tmp_path / "pack", {"text": "one"}):
        pass
    assert not caplog.text
