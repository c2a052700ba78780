"""Archives: only the named members come out, and nothing of them reaches elsewhere."""

import pytest

from dragoman.store.download import Bar, SourceError
from dragoman.store.packages import append_members

from .conftest import make_tarball, make_wheel

MEMBERS = {"data/a.bin": b"a" * 1000, "data/b.bin": b"b" * 10, "code.py": b"raise SystemExit"}


@pytest.fixture(params=["wheel", "tarball"])
def archive(request, tmp_path):
    if request.param == "wheel":
        return make_wheel(tmp_path, "toy", MEMBERS)
    path = tmp_path / "toy.tgz"
    path.write_bytes(make_tarball(MEMBERS))
    return path


def take(archive, members, limit=10_000):
    append_members(archive, "toy", members, limit, Bar())


def test_only_the_named_members_come_out(archive, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    take(archive, {"data/a.bin": out / "x"})
    assert [path.name for path in out.iterdir()] == ["x"]
    assert (out / "x").read_bytes() == MEMBERS["data/a.bin"]


def test_pieces_are_joined(archive, tmp_path):
    to = tmp_path / "joined"
    take(archive, {"data/b.bin": to})
    take(archive, {"data/a.bin": to})
    assert to.read_bytes() == MEMBERS["data/b.bin"] + MEMBERS["data/a.bin"]


def test_a_missing_member_is_a_sentence(archive, tmp_path):
    with pytest.raises(SourceError, match=r"toy has no member 'c\.bin'"):
        take(archive, {"c.bin": tmp_path / "c"})


def test_a_damaged_archive_is_a_sentence(archive, tmp_path):
    archive.write_bytes(archive.read_bytes()[:60])
    with pytest.raises(SourceError, match="toy cannot be unpacked"):
        take(archive, {"data/a.bin": tmp_path / "a"})


def test_an_archive_that_swells_is_stopped(archive, tmp_path):
    with pytest.raises(SourceError, match="unpacks to more than the catalogue names"):
        take(archive, {"data/a.bin": tmp_path / "a"}, limit=999)


def test_members_that_lead_elsewhere_are_left_alone(tmp_path):
    """`../evil` beside the wanted member is never written, and a link is no plain file."""
    folder = tmp_path / "deep" / "folder"
    folder.mkdir(parents=True)
    path = folder / "toy.tgz"
    members = {"../evil": b"evil", "/tmp/dragoman-evil": b"evil", "good": b"good"}
    path.write_bytes(make_tarball(members, links={"wanted": "/etc/hostname"}))
    take(path, {"good": folder / "good"})
    assert {found.name for found in tmp_path.rglob("*")} == {"deep", "folder", "toy.tgz", "good"}
    with pytest.raises(SourceError, match="has no member 'wanted' that is a plain file"):
        take(path, {"wanted": folder / "wanted"})
