"""Where sentences end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.sentences import ends_sentence, full_stop, split_sentences, with_stop


@pytest.mark.parametrize(
    ("word", "following", "expected"),
    [
        (" over.", " Then", True),
        (" over.", "", True),
        (" why?", " because", False),
        (' said."', " He", True),
        (" Mr.", " Smith", False),
        (" No.", " That", True),
        (" F.", " Kennedy", False),
        (" z.B.", " Äpfel", False),
        (" z.", " B.", False),
        (" i.d.R.", " Kinder", False),
        (" U.N.", " Security", False),
        (" („Dr.", " Müller“)", False),
        (" p.m.", " The", True),
        (" Sen.", " Warren", False),
        (" gen.", " But", True),
        (" No.", " 10", False),
        (" Art.", " 5", False),
        (" Art.", " Wir", True),
        (" mind.", " It", True),
        (" ca.", " 5", False),
        (" Mio.", " Euro", False),
        (" a.", " Puis", True),  # il y en a
        (" Ja.“", " Dann", True),
        (" Nein.«", " Dann", True),
        (" 3.5", " Million", False),
        ("です。", "次", True),
        (" ہے۔", " یہ", True),
        (" ነው።", " ይህ", True),
        ("တယ်။", "", True),
        ("។", "", True),
        (" է։", "", True),
        (" and", " so", False),
        ("", "", False),
    ],
)
def test_ends(word, following, expected):
    assert ends_sentence(word, following) is expected


@pytest.mark.parametrize(
    ("word", "language", "ends"),
    [
        (" 8.", "de", False),  # am 8. September
        (" 31.", "fi", False),
        (" 8.", "en", True),  # There were 8.
        (" 8.", "es", True),
        (" 8.", "", True),
        (" 2008.", "de", True),
        (" 8!", "de", True),
        (" 3.8.", "de", True),
    ],
)
def test_an_ordinal_ends_no_sentence_where_a_stop_makes_it_one(word, language, ends):
    assert ends_sentence(word, " September", language) is ends
    assert ends_sentence(word, language=language) is ends


@pytest.mark.parametrize(("word", "language", "ends"), [
    (" z.", "de", False), (" h.", "de", False), (" p.", "es", False), (" a.", "fr", True),
    (" я.", "ru", True),
])  # fmt: skip
def test_a_small_letter_is_no_word_everywhere(word, language, ends):
    assert ends_sentence(word, " Then", language) is ends
    assert ends_sentence(word, language=language) is ends


@given(st.lists(st.sampled_from([" One", " two", " Mr.", " end.", " What?"])))
def test_every_word_is_in_one_sentence(words):
    ends = split_sentences(words)
    assert ends == sorted(set(ends))
    assert (ends[-1] if ends else 0) == len(words)
    for end in ends[:-1]:
        assert ends_sentence(words[end - 1], words[end])


@pytest.mark.parametrize(
    ("language", "stop"),
    [("en", "."), ("ja", "。"), ("th", ""), ("lo", ""), ("my", "။"), ("km", "។"), ("ur", "۔"),
     ("hi", "।"), ("am", "።"), ("hy", "։")],
)  # fmt: skip
def test_a_full_stop_is_that_of_the_language(language, stop):
    assert full_stop(language) == stop
    assert with_stop(["x", "y"], language) == ["x", f"y{stop}"]
    assert not stop or ends_sentence(f"y{stop}")
