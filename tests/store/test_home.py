"""Where the store lies, what its files are called, and what makes its records void."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.store import home as store
from dragoman.store.home import File, git_name_of, name_of, stem


def test_dragoman_home_goes_before_all(monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", "~/somewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert store.home() == Path.home() / "somewhere"


@pytest.mark.parametrize(
    ("system", "variables", "path"),
    [
        ("linux", {"XDG_CACHE_HOME": "/cache"}, Path("/cache/dragoman")),
        ("linux", {}, Path.home() / ".cache" / "dragoman"),
        ("darwin", {}, Path.home() / "Library" / "Caches" / "dragoman"),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local/dragoman")),
    ],
)
def test_the_platforms_cache_directory(monkeypatch, system, variables, path):
    for name in ("DRAGOMAN_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    assert store.home() == path


part = st.from_regex(r"[A-Za-z0-9]([._]?[A-Za-z0-9]-?){0,4}[a-z]", fullmatch=True)
revision = st.from_regex(r"[a-z0-9]+(/[a-z0-9.-]+){0,2}", fullmatch=True)


@given(part, part, st.one_of(st.none(), revision))
def test_every_name_of_the_hub_has_a_file_name_and_comes_back(owner, model, at):
    name = f"hub:{owner}/{model}" + (f"@{at}" if at else "")
    assert "/" not in stem(name)
    assert name_of(stem(name)) == name


def test_other_names_are_file_names():
    assert stem("whisper-base") == name_of("whisper-base") == "whisper-base"
    assert stem("hub:a/b@refs/pr/1") == "hub--a--b@refs%2Fpr%2F1"


def test_gits_name_of_a_file(tmp_path):
    (tmp_path / "a").write_bytes(b"hello\n")
    assert git_name_of(tmp_path / "a") == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert File(6, git="ce013625030ba8dba906f756967f9e9ca394464a").is_at(tmp_path / "a")
    assert not File(7, git="ce013625030ba8dba906f756967f9e9ca394464a").is_at(tmp_path / "a")
    assert not File(6, git="0" * 40).is_at(tmp_path / "a")
    assert not File(6, git="0" * 40).is_at(tmp_path / "b")


ENTRY = """about: a toy
task: translation
files:
  # the weights
  a: {size: 1, sha256: aa}

  b: {size: 2, sha256: bb}
licence: MIT
"""


@pytest.fixture
def noted(home):
    entry = home / "toy.yaml"
    folder = store.folder_of("toy")
    folder.mkdir(parents=True)
    for name in "ab":
        (folder / name).write_bytes(b"x")
    entry.write_text(ENTRY)
    store.write_record("toy", entry, ["a", "b"])
    return entry


@pytest.mark.parametrize("change", [("a toy", "another toy"), ("MIT", "MIT\ncost: 1.5")])
def test_what_an_entry_says_besides_its_files_is_no_matter(noted, change):
    assert store.still_holds("toy", noted)
    noted.write_text(ENTRY.replace(*change))
    assert store.still_holds("toy", noted)


@pytest.mark.parametrize("change", [("aa", "ac"), ("size: 2", "size: 3"), ("  b:", "  c:")])
def test_other_files_make_the_record_void(noted, change):
    noted.write_text(ENTRY.replace(*change))
    assert not store.still_holds("toy", noted)


@pytest.mark.parametrize("record", ["", "[]", "{}", '{"entry": 1}', "null", "not json"])
def test_a_record_that_makes_no_sense_is_none(noted, record):
    store.record_of("toy").write_text(record)
    assert not store.still_holds("toy", noted)


def test_no_record_and_no_entry(noted, home):
    assert not store.still_holds("other", noted)
    assert not store.still_holds("toy", home / "nothing.yaml")
    store.forget("toy")
    store.forget("toy")  # what is gone may be forgotten again
    assert not store.still_holds("toy", noted)
