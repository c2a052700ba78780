"""The choice of a voice."""

from dataclasses import replace

import pytest

from dragoman.errors import DragomanError
from dragoman.store import catalogue
from dragoman.voices import VOICES, kokoro, open_voice, registry
from dragoman.voices.registry import Offer
from tests.voices.fakes import ToneVoice


def offer(*languages, missing=None, name=""):
    def open_tone(language, speaker):
        voice = ToneVoice()
        voice.languages, voice.speaker, voice.name = (language,), speaker, name
        return voice

    return Offer("a tone", "CC0", lambda: languages, lambda language: missing, open_tone)


@pytest.fixture
def voices(monkeypatch):
    """Three voices of which the second is not ready."""
    found = {
        "first": offer("en", name="first"),
        "second": offer("en", "es", name="second", missing="run: get it"),
        "third": offer("es", "de", name="third"),
    }
    monkeypatch.setattr(registry, "VOICES", found)
    return found


def test_english_is_spoken_without_anything_to_fetch():
    assert open_voice(None, "en").name == "hibari"
    assert VOICES["hibari"].missing("en") is None


def test_a_light_german_voice_comes_before_one_that_needs_a_core(monkeypatch):
    ready = {"kokoro": offer("de", name="kokoro"), "dittli-de": offer("de", name="dittli-de")}
    monkeypatch.setattr(
        registry, "VOICES", {name: ready.get(name, VOICES[name]) for name in VOICES}
    )
    assert open_voice(None, "de").name == "dittli-de"
    assert open_voice("kokoro", "de").name == "kokoro"


@pytest.mark.parametrize(("language", "name"), [("en", "first"), ("es", "third"), ("de", "third")])
def test_the_first_that_is_ready_and_has_the_language(voices, language, name):
    voice = open_voice(None, language)
    assert (voice.name, voice.languages) == (name, (language,))


def test_a_voice_that_lacks_the_language_names_those_that_have_it(voices):
    with pytest.raises(DragomanError, match="'first' does not speak 'es'; choose second or third"):
        open_voice("first", "es")


def test_a_language_that_no_voice_has(voices):
    with pytest.raises(DragomanError, match="No voice speaks 'xx'"):
        open_voice(None, "xx")
    with pytest.raises(DragomanError, match="no other voice has it"):
        open_voice("first", "xx")


def test_when_no_voice_is_ready_it_says_what_to_do(voices):
    del voices["third"]
    with pytest.raises(DragomanError, match=r"No voice for 'es' is ready \(second: run: get it\)"):
        open_voice(None, "es")


def test_a_voice_that_is_wanted_by_name_may_fetch_what_it_lacks(voices):
    assert open_voice("second", "es").name == "second"


def test_a_voice_whose_languages_are_unknown_until_it_is_installed(voices):
    voices["fourth"] = offer(missing="run: install it")
    with pytest.raises(DragomanError, match="'fourth' is not ready; run: install it"):
        open_voice("fourth", "en")
    with pytest.raises(DragomanError, match=r"for .xx. is ready .fourth: run: install it"):
        open_voice(None, "xx")


def test_a_voice_far_away_is_never_a_default(voices):
    voices["cloud"] = replace(offer("fi"), local=False)
    with pytest.raises(DragomanError, match="cloud: ask for it by name"):
        open_voice(None, "fi")
    assert open_voice("cloud", "fi").languages == ("fi",)


def test_an_unknown_voice_names_the_known_ones(voices):
    with pytest.raises(DragomanError, match="no voice 'firts'; there are first, second, third"):
        open_voice("firts", "en")


def test_a_speaker_stands_after_a_colon(voices):
    assert open_voice("third:anna", "de").speaker == "anna"


@pytest.mark.parametrize(
    ("name", "language"), [("hibari", "en"), ("piper-en_US-joe", "en"), ("dittli-de", "de")]
)
def test_a_voice_of_one_speaker_has_no_other(name, language):
    with pytest.raises(DragomanError, match=f"{name} has no speaker 'anna'; it has only one"):
        open_voice(f"{name}:anna", language)


def test_what_the_store_says_that_kokoro_speaks_is_what_it_is_made_to_speak():
    assert catalogue.model("kokoro").languages == tuple(sorted(kokoro.languages()))
