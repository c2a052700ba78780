"""The choice of a voice."""

import pytest

from dragoman.errors import DragomanError
from dragoman.voices import VOICES, open_voice, registry
from dragoman.voices.registry import Offer
from tests.voices.fakes import ToneVoice


def offer(*languages, missing=None):
    def open_tone(language, speaker):
        voice = ToneVoice()
        voice.languages, voice.speaker = (language,), speaker
        return voice

    return Offer("a tone", "CC0", lambda: languages, lambda: missing, open_tone)


@pytest.fixture
def voices(monkeypatch):
    """Three voices of which the second is not ready."""
    found = {
        "first": offer("en"),
        "second": offer("en", "es", missing="run: get it"),
        "third": offer("es", "de"),
    }
    monkeypatch.setattr(registry, "VOICES", found)
    return found


def test_english_is_spoken_without_anything_to_fetch():
    assert open_voice(None, "en").name == "hibari"
    assert VOICES["hibari"].missing() is None


@pytest.mark.parametrize(("language", "position"), [("en", 0), ("es", 2), ("de", 2)])
def test_the_first_that_is_ready_and_has_the_language(voices, language, position, monkeypatch):
    opened = []
    for number, (name, old) in enumerate(voices.items()):
        voices[name] = Offer(
            old.about,
            old.licence,
            old.languages,
            old.missing,
            lambda lang, speaker, number=number: opened.append((number, lang)),
        )
    open_voice(None, language)
    assert opened == [(position, language)]


def test_a_voice_that_lacks_the_language_names_those_that_have_it(voices):
    with pytest.raises(DragomanError, match="'first' does not speak 'es'; choose second or third"):
        open_voice("first", "es")


def test_a_language_that_no_voice_has(voices):
    with pytest.raises(DragomanError, match="No voice speaks 'xx'"):
        open_voice(None, "xx")
    with pytest.raises(DragomanError, match="no other voice has it"):
        open_voice("first", "xx")


def test_a_voice_that_is_not_ready_says_what_to_do(voices):
    with pytest.raises(DragomanError, match="'second' is not ready: run: get it"):
        open_voice("second", "en")
    del voices["third"]
    with pytest.raises(DragomanError, match="No voice for 'es' is ready: second: run: get it"):
        open_voice(None, "es")


def test_an_unknown_voice_names_the_known_ones(voices):
    with pytest.raises(DragomanError, match="no voice 'firts'; there are first, second, third"):
        open_voice("firts", "en")


def test_a_speaker_stands_after_a_colon(voices):
    assert open_voice("third:anna", "de").speaker == "anna"
