import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.text.languages import HEARD, LANGUAGES, find_language


def test_whispers_hundred_languages_are_there():
    assert len(HEARD) == 100  # 99, and Cantonese of the third version
    assert {"en", "de", "zh", "haw", "jw", "yue", "su", "nn", "ba"} <= set(HEARD)


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=lambda language: language.code)
def test_every_code_and_name_leads_to_its_own_language(language):
    for key in (language.code, language.name, *language.aliases):
        assert find_language(key) is language
        assert find_language(key.upper()) is language


@pytest.mark.parametrize(
    ("text", "code"),
    [
        *(("German", "de"), ("deu", "de"), ("ger", "de"), (" de ", "de"), ("DE-at", "de")),
        *(("pt_BR", "pt"), ("zh-Hant-TW", "zh"), ("Mandarin", "zh"), ("cmn", "zh")),
        *(("jv", "jw"), ("nb", "no"), ("fil", "tl"), ("Haitian Creole", "ht"), ("ESPAÑOL", "es")),
    ],
)
def test_what_people_write(text, code):
    assert find_language(text).code == code


def test_what_is_near_is_suggested():
    with pytest.raises(DragomanError, match=r"Did you mean 'German' \(de\)\?"):
        find_language("Germen")


@given(st.text())
def test_anything_else_is_a_sentence(text):
    keys = [key for one in LANGUAGES.values() for key in (one.code, one.name, *one.aliases)]
    known = {key.casefold() for key in keys}
    base = text.strip().casefold().replace("_", "-").split("-")[0]
    assume(text.strip().casefold() not in known and base not in known)
    with pytest.raises(DragomanError, match="is not a language"):
        find_language(text)


def test_languages_without_spaces_are_counted_in_characters():
    without = {code for code, language in LANGUAGES.items() if language.unit == "char"}
    assert without == {"zh", "yue", "ja", "th", "lo", "my", "km", "bo", "dz"}
    assert LANGUAGES["ko"].unit == "word"
