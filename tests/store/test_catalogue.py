"""The catalogue: what ships is sound, and what makes no sense is refused with a sentence."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.store import catalogue, home
from dragoman.store.kinds import is_needed

SHIPPED = sorted(path.stem for path in home.shipped_entries().glob("*.yaml"))
PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_page_on_models_tells_of_every_one():
    assert len(SHIPPED) >= 11
    assert set(SHIPPED) == set(
        re.findall(r"`([\w.-]+)`(?=[^\n]*\| [^\n]* MB \|)", PAGE.read_text())
    )


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_entry_is_sound(name):
    model = catalogue.model(name)
    hashes = [*model.files.values(), *(archive.file for archive in model.archives)]
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) and file.size > 0 for file in hashes)
    if model.archives:
        carried = {file for archive in model.archives for file in archive.members}
        assert carried == set(model.files)
    else:
        assert model.hub or (PAGE.parents[1] / "weights" / name).is_dir()  # in the clone itself
    if model.hub:
        assert re.fullmatch("[0-9a-f]{40}", model.hub.revision)  # never a branch that moves on
        assert all(is_needed(file) for file in model.files)
    assert "model.bin" in model.files or not model.rest_from_hub
    assert model.languages
    assert model.licence


def test_a_split_file_is_made_of_both_archives():
    """The default model's weights are two halves in two wheels, first half first."""
    first, second = catalogue.model("whisper-base").archives
    assert first.members["model.bin"].endswith(".part1")
    assert second.members == {"model.bin": second.members["model.bin"]}
    assert second.members["model.bin"].endswith(".part2")


def test_a_star_stands_for_each_file(enter):
    archive = {"npm": "x@1", "size": 1, "sha256": "0", "members": {"voices/*": "in/*"}}
    enter("toy", {"voices/a": b"a", "voices/b": b"b", "c": b"c"}, archives=[archive])
    (found,) = catalogue.model("toy").archives
    assert found.members == {"voices/a": "in/a", "voices/b": "in/b"}


def test_a_star_in_the_middle_stands_for_what_lies_between(enter):
    """So one line names the files of one kind, and those beside them stay out."""
    members = {"voices/*.bin": "in/*/voice.bin"}
    archive = {"npm": "x@1", "size": 1, "sha256": "0", "members": members}
    enter("toy", {"voices/a.bin": b"a", "voices/a.txt": b"b", "c.bin": b"c"}, archives=[archive])
    (found,) = catalogue.model("toy").archives
    assert found.members == {"voices/a.bin": "in/a/voice.bin"}


@pytest.mark.parametrize("name", ["wisper-base", "whisper_base", "whisper-bas"])
def test_a_misspelt_name_is_told_the_nearest(name):
    with pytest.raises(DragomanError, match="did you mean 'whisper-base'"):
        catalogue.model(name)


@pytest.mark.parametrize("name", ["zzzzzz", "../places", "", "a\\b", "/etc/passwd"])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(DragomanError, match="there is no model"):
        catalogue.model(name)


@pytest.mark.parametrize("file", ["../evil", "/evil", "//", "a/../../evil", "a\\..\\b", "", "."])
def test_a_file_name_that_leads_elsewhere_is_refused(enter, file):
    enter("toy", {file: b"x"})
    with pytest.raises(DragomanError, match="not a plain relative path"):
        catalogue.model("toy")


@given(st.text(alphabet=st.sampled_from("ab./\\~\0"), max_size=8))
def test_no_accepted_file_name_leaves_the_folder(name):
    try:
        catalogue.check_file_name(name, Path("entry.yaml"))
    except DragomanError:
        return
    folder = Path("/store/models/toy")
    inside = Path(*(folder / name).parts)
    assert inside.is_relative_to(folder)
    assert ".." not in inside.parts
    assert inside != folder


def test_a_broken_entry_is_a_sentence(home):
    (home / "entries").mkdir(parents=True)
    (home / "entries" / "toy.yaml").write_text("about: a toy\n")
    with pytest.raises(DragomanError, match=r"is not an entry of the model catalogue: .*task"):
        catalogue.model("toy")


@pytest.mark.parametrize("index", [{}, {"npm": "x@1", "pypi": "x.whl"}])
def test_an_archive_has_one_index(enter, index):
    enter("toy", {"a": b"a"}, archives=[{"size": 1, "sha256": "0", "members": {}, **index}])
    with pytest.raises(DragomanError, match="one index"):
        catalogue.model("toy")


def test_a_member_for_a_file_without_hash_is_refused(enter):
    archive = {"npm": "x@1", "size": 1, "sha256": "0", "members": {"b": "b"}}
    enter("toy", {"a": b"a"}, archives=[archive])
    with pytest.raises(DragomanError, match="takes 'b' from an archive but gives no hash"):
        catalogue.model("toy")
