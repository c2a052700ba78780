"""Package archives, through pip and npm as they are configured; made packages, no network."""

import shutil

import pytest

from dragoman.errors import DragomanError
from dragoman.store import get

from .conftest import make_tarball

FIRST, SECOND, NOTE = b"first half " * 1000, b"second half" * 1000, b"a note"


def test_a_file_in_two_wheels_is_joined(enter, wheels):
    """Both wheels are found by pip; the file that spans them is put together in order."""
    code = b"raise SystemExit('this code must never run')"
    one = {"one/part1": FIRST, "one/note": NOTE, "one/__init__.py": code}
    archives = [
        wheels("toy_one", one, {"model.bin": "one/part1", "note.txt": "one/note"}),
        wheels("toy_two", {"two/part2": SECOND}, {"model.bin": "two/part2"}),
    ]
    enter("toy", {"model.bin": FIRST + SECOND, "note.txt": NOTE}, archives=archives)
    folder = get("toy")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "model.bin": FIRST + SECOND,
        "note.txt": NOTE,
    }


def test_files_alike_and_an_empty_one(enter, npm_package, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))  # no npm
    files = {"a": NOTE, "b": NOTE, "c": b""}
    tarball = make_tarball({f"package/{name}": data for name, data in files.items()})
    enter("toy", files, archives=[npm_package("toy", tarball, {"*": "package/*"})])
    assert {path.name: path.read_bytes() for path in get("toy").iterdir()} == files


def test_a_wheel_for_another_machine_serves_as_well(enter, wheels, tmp_path):
    archive = wheels("toy", {"a": NOTE}, {"a": "a"})
    name = "toy-1.0-py3-none-win_arm64.whl"
    (tmp_path / "wheels" / archive["pypi"]).rename(tmp_path / "wheels" / name)
    enter("toy", {"a": NOTE}, archives=[{**archive, "pypi": name}])
    assert (get("toy") / "a").read_bytes() == NOTE


def test_a_wheel_that_no_index_has_is_a_sentence(enter, wheels, tmp_path):
    archive = wheels("toy", {"a": NOTE}, {"a": "a"})
    (tmp_path / "wheels" / archive["pypi"]).unlink()
    enter("toy", {"a": NOTE}, archives=[archive])
    with pytest.raises(DragomanError, match="pip finds it in no package index"):
        get("toy")


def test_a_member_with_other_bytes_is_refused(enter, npm_package, monkeypatch, tmp_path):
    """The archive is the one that was named, but what is in it is not the file."""
    monkeypatch.setenv("PATH", str(tmp_path))  # no npm
    archive = npm_package("toy", make_tarball({"package/a": b"other"}), {"a": "package/a"})
    enter("toy", {"a": b"right"}, archives=[archive])
    with pytest.raises(DragomanError, match=r"a from toy@1\.0\.0 is not the file"):
        get("toy")
    assert not list((tmp_path / "home" / "models").rglob("a"))


@pytest.mark.parametrize("name", ["toy", "@team/toy"])
@pytest.mark.parametrize("with_npm", [True, False])
def test_an_npm_package(enter, npm_package, monkeypatch, tmp_path, name, with_npm):
    if with_npm and not shutil.which("npm"):
        pytest.skip("npm is not installed")
    if not with_npm:
        monkeypatch.setenv("PATH", str(tmp_path))
    archive = npm_package(name, make_tarball({"package/a": NOTE}), {"a": "package/a"})
    enter("toy", {"a": NOTE}, archives=[archive])
    assert (get("toy") / "a").read_bytes() == NOTE


def test_why_npm_failed_is_told_and_not_where_its_log_is(enter, npm_package, monkeypatch, tmp_path):
    npm = tmp_path / "npm"
    npm.write_text(
        "#!/bin/sh\necho 'npm error code EAI_AGAIN\nnpm error request to https://… failed\n"
        "npm error A complete log of this run can be found in: /logs/1.log' >&2\nexit 1\n"
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    archive = npm_package("toy", make_tarball({"package/a": NOTE}), {"a": "package/a"})
    enter("toy", {"a": NOTE}, archives=[archive])
    with pytest.raises(DragomanError, match=r"does not find it \(request to https://… failed\)"):
        get("toy")


def test_an_interrupted_tarball_continues(enter, npm_package, server, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    tarball = make_tarball({"package/a": NOTE})
    archive = npm_package("toy", tarball, {"a": "package/a"})
    enter("toy", {"a": NOTE}, archives=[archive])
    partial = tmp_path / "home" / "partial" / "toy" / archive["sha256"]
    partial.parent.mkdir(parents=True)
    partial.write_bytes(tarball[:50])
    assert (get("toy") / "a").read_bytes() == NOTE
    assert ("/toy.tgz", "bytes=50-") in server.asked
    assert not partial.exists()


def test_an_interrupted_wheel_continues(enter, wheels, server, monkeypatch, tmp_path):
    """Where pip tells an open address, pip does not fetch: it would begin at the beginning."""
    archive = wheels("toy", {"a": NOTE}, {"a": "a"})
    enter("toy", {"a": NOTE}, archives=[archive])
    address = f"{server.address}/toy.whl"
    monkeypatch.setattr("dragoman.store.packages._pip_address", lambda wheel: address)
    wheel = (tmp_path / "wheels" / archive["pypi"]).read_bytes()
    server.pages["/toy.whl"] = wheel
    partial = tmp_path / "home" / "partial" / "toy" / archive["sha256"]
    partial.parent.mkdir(parents=True)
    partial.write_bytes(wheel[:50])
    assert (get("toy") / "a").read_bytes() == NOTE
    assert server.asked == [("/toy.whl", "bytes=50-")]


def test_the_registry_of_npmrc(enter, npm_package, server, monkeypatch, tmp_path):
    archive = npm_package("toy", make_tarball({"package/a": NOTE}), {"a": "package/a"})
    monkeypatch.delenv("NPM_CONFIG_REGISTRY")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".npmrc").write_text(f"fund=false\nregistry = {server.address}/\n")
    enter("toy", {"a": NOTE}, archives=[archive])
    assert (get("toy") / "a").read_bytes() == NOTE


def test_no_npm_and_no_registry_is_a_sentence(enter, npm_package, monkeypatch, tmp_path):
    archive = npm_package("toy", make_tarball({"package/a": NOTE}), {"a": "package/a"})
    monkeypatch.delenv("NPM_CONFIG_REGISTRY")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    enter("toy", {"a": NOTE}, archives=[archive])
    with pytest.raises(DragomanError, match="npm is not installed and no npm registry"):
        get("toy")


@pytest.mark.parametrize("address", [None, "http://me:****@127.0.0.1:1/toy.whl"])
def test_pip_itself_fetches_where_it_hides_the_address(enter, wheels, monkeypatch, address):
    """An index with a password is pip's alone to open: it tells an address that opens nothing, or
    none."""
    archive = wheels("toy", {"a": NOTE}, {"a": "a"})
    enter("toy", {"a": NOTE}, archives=[archive])
    monkeypatch.setattr("dragoman.store.packages._pip_address", lambda wheel: address)
    assert (get("toy") / "a").read_bytes() == NOTE


def test_pip_itself_may_bring_the_wrong_archive(enter, wheels, monkeypatch):
    archive = {**wheels("toy", {"a": NOTE}, {"a": "a"}), "sha256": "0" * 64}
    enter("toy", {"a": NOTE}, archives=[archive])
    monkeypatch.setattr("dragoman.store.packages._pip_address", lambda wheel: None)
    with pytest.raises(DragomanError, match="pip could not fetch it"):
        get("toy")
