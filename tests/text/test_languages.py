import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.text.languages import (
    HEARD,
    LANGUAGES,
    UNSPACED,
    WITHOUT_SPACES,
    find_language,
    written_without_spaces,
)


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


# A sentence of each language that is written without spaces.
SENTENCES = {
    "zh": "我说普通话",
    "yue": "我哋講嘢㗎",
    "ja": "わたしは日本語をハナス",
    "th": "ฉันพูดภาษาไทย",
    "lo": "ຂ້ອຍເວົ້າພາສາລາວ",
    "my": "ကျွန်တော်မြန်မာစကားပြောတယ်",
    "km": "ខ្ញុំនិយាយភាសាខ្មែរ",
    "bo": "ངས་བོད་སྐད་ཤེས་ཀྱི་ཡོད།",
    "dz": "ང་རྫོང་ཁ་སླབ་ཚུགས།",
}


def test_one_definition_tells_who_writes_without_spaces():
    assert set(SENTENCES) == set(WITHOUT_SPACES)
    for code, language in LANGUAGES.items():
        assert written_without_spaces(code) == (code in SENTENCES) == (not language.spaced)


@pytest.mark.parametrize(("code", "sentence"), SENTENCES.items())
def test_the_script_of_such_a_language_is_known(code, sentence):
    assert all(UNSPACED.match(letter) for letter in sentence)


@pytest.mark.parametrize("letter", ["a", "ä", "я", "ا", "ह", "한", "ㄱ", "ﾡ", "1", ".", " ", ""])
def test_all_other_scripts_have_spaces(letter):
    assert not UNSPACED.match(letter)


@pytest.mark.parametrize(
    ("code", "without"),
    [("zh-Hant", True), ("khm_Khmr", True), ("Tibetan", True), ("en_US", False), ("xx", False)],
)
def test_other_codes_of_a_language_without_spaces(code, without):
    assert written_without_spaces(code) is without
