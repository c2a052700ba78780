"""The model for a pair of languages, where nobody names one."""

import os

import pytest

from dragoman.errors import DragomanError
from dragoman.models.choose import choose, with_translator
from dragoman.setup import Setup
from dragoman.store import catalogue, home


@pytest.fixture
def nothing_here(tmp_path, monkeypatch):
    """A machine without any model."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(home, "weight_folders", lambda: [tmp_path / "weights"])
    return tmp_path / "weights"


def put(place, name):
    """Something that looks like a model."""
    for file, known in catalogue.model(name).files.items():
        path = place / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.truncate(path, known.size)


@pytest.mark.parametrize(("source", "target"), [(None, "en"), ("de", "en"), ("de", "de")])
def test_whisper_translates_into_english_and_writes_down(source, target, nothing_here):
    assert choose(source, target) == "whisper-base"


def test_into_other_languages_a_translator_that_is_here_stands_behind_a_recogniser(
    nothing_here, monkeypatch
):
    folder = nothing_here / "opus-en-de"
    folder.mkdir(parents=True)
    for file, known in catalogue.model("opus-en-de").files.items():
        with pytest.raises(DragomanError, match="Nothing here translates from 'en' into 'de' yet"):
            choose("en", "de")  # half of a model is none
        (folder / file).touch()
        with pytest.raises(DragomanError, match="Nothing here translates from 'en' into 'de' yet"):
            choose("en", "de")  # nor is one whose files are cut
        os.truncate(folder / file, known.size)
    assert choose("en", "de") == "whisper-base+opus-en-de"
    with pytest.raises(DragomanError, match="'dragoman models get opus-en-fr'"):
        choose("en", "fr")
    monkeypatch.setattr("dragoman.store.at_hand", lambda name: name == "opus-en-fr" or None)
    assert choose("en", "fr") == "whisper-base+opus-en-fr"  # fetched into the store


def test_where_nobody_has_a_translator_one_of_ones_own_is_asked_for(nothing_here, monkeypatch):
    monkeypatch.setattr(catalogue, "names", lambda: ["st-en"])  # which hears, and reads nothing
    with pytest.raises(DragomanError, match="nor does anything in the catalogue; give a recogn"):
        choose("en", "de")


def test_where_to_get_what_ships_with_a_clone_is_told(nothing_here):
    """Nobody else has it, on whatever network."""
    with pytest.raises(DragomanError, match="'dragoman models get mt-en', typed in a clone of"):
        choose("en", "de")


def test_a_translator_of_everything_serves_any_pair(nothing_here):
    put(nothing_here, "nllb-600m")
    assert choose("fr", "de") == "whisper-base+nllb-600m"


def test_what_goes_behind_a_recogniser_is_here_or_can_be_had(nothing_here):
    assert with_translator("mine", "en", "de") == "--model mine+mt-en"
    put(nothing_here, "opus-en-de")
    assert with_translator("mine", "en", "de") == "--model mine+opus-en-de"
    assert with_translator("mine", None, "de") == "--model mine+TRANSLATOR"


def test_what_nobody_reads_goes_through_english(nothing_here):
    put(nothing_here, "opus-en-de")
    assert choose("fr", "de") == choose(None, "de") == "whisper-base+opus-en-de"
    put(nothing_here, "mt-en")
    assert choose("fr", "de") == choose(None, "de") == "whisper-base+mt-en"
    assert choose("en", "de") == "whisper-base+mt-en"
    put(nothing_here, "nllb-600m")
    assert choose("fr", "de") == "whisper-base+nllb-600m"  # which reads it as it is
    assert choose(None, "de") == "whisper-base+mt-en"  # which need not be told


def test_who_only_has_a_translator_of_everything_says_what_is_spoken(nothing_here):
    put(nothing_here, "nllb-600m")
    with pytest.raises(DragomanError) as refused:
        choose(None, "fr")
    assert str(refused.value) == (
        "To translate into 'fr', it has to be known which language is spoken (into English, it may "
        "be found out); say it with --from, or get a translator that goes on from English with "
        "'dragoman models get opus-en-fr'."
    )
    with pytest.raises(DragomanError, match=r"with --from\.$"):
        choose(None, "ja")  # into which nothing goes from English alone


def test_both_ways_are_told_of_where_neither_can_be_gone(nothing_here):
    with pytest.raises(DragomanError) as refused:
        choose("fr", "es")
    assert str(refused.value) == (
        "Nothing here translates from 'fr' into 'es' yet; get a translator with 'dragoman models "
        "get nllb-600m', or get a translator that goes on from English with 'dragoman models get "
        "mt-en', typed in a clone of Dragoman, which it comes with."
    )
    with pytest.raises(DragomanError, match="'dragoman models get mt-en'") as refused:
        choose("en", "es")
    assert "goes on from English" not in str(refused.value)


def test_behind_a_recogniser_that_translates_who_reads_english_will_do(nothing_here):
    put(nothing_here, "mt-en")
    assert with_translator("mine", "fr", "de", pivots=True) == "--model mine+mt-en"
    assert with_translator("mine", None, "de", pivots=True) == "--model mine+mt-en"
    assert with_translator("mine", "fr", "de") == "--model mine+nllb-600m"  # which can be had
    put(nothing_here, "nllb-600m")
    assert with_translator("mine", "fr", "de", pivots=True) == "--model mine+nllb-600m"


def test_who_speaks_must_be_known(nothing_here):
    with pytest.raises(DragomanError, match="--from"):
        choose(None, "de")


@pytest.mark.parametrize("name", ["mt-en", "st-en"])
def test_the_models_that_ship_are_whole(name):
    """What weights/ holds is what the catalogue says, and English is spoken out of the box."""
    entry = catalogue.model(name)
    places = [folder / name for folder in home.weight_folders()]
    place = next(place for place in places if place.is_dir())
    assert all(file.is_at(place / file_name) for file_name, file in entry.files.items())
    for target in entry.targets:
        assert choose("en", target) == "whisper-base+mt-en"


def test_a_setup_is_settled_once_its_languages_are_known():
    setup = Setup(source="en", target="es")
    assert setup.settled().model == "whisper-base+mt-en"
    assert setup.with_changes(target="en").settled().model == "whisper-base"
    assert Setup(source="en", target="es", model="mine").settled().model == "mine"
