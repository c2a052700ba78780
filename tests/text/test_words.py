import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.caption_layout import TimedWord
from dragoman.text.words import is_whole, join_words, split_words, whole_words

MIXED = st.text(alphabet="ab1 ,.!่ั กข你好，。ーアɛ\u0301\n", max_size=40)


def bare(text):
    return "".join(text.split())


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("Guten  Tag, Welt!\n", "de", ["Guten", "Tag,", "Welt!"]),
        ("你好，世界。", "zh", ["你", "好", "，", "世", "界", "。"]),
        ("我用 iPhone 15 拍照", "zh", ["我", "用", "iPhone", "15", "拍", "照"]),
        ("สวัสดีครับ", "th", ["ส", "วั", "ส", "ดี", "ค", "รั", "บ"]),
        ("東京タワー", "ja", ["東", "京", "タ", "ワ", "ー"]),
        ("안녕 세계", "ko", ["안녕", "세계"]),
        ("", "ja", []),
    ],
)
def test_split(text, language, words):
    assert split_words(text, language) == words


@pytest.mark.parametrize(
    ("words", "language", "text"),
    [
        (["Hello", ",", "world", "!"], "en", "Hello, world!"),
        (["(", "a", ")", "is", "3", "%", "."], "en", "(a) is 3%."),
        (["(", "a", ")", "ist", "3", "%", "."], "de", "(a) ist 3 %."),
        (["¿", "Qué", "?"], "es", "¿Qué?"),
        (["Vraiment", "?", "Oui", "."], "fr", "Vraiment ? Oui."),
        (["Tag,", "Welt"], "de", "Tag, Welt"),
        (["我", "用", "iPhone", "15", "拍", "照"], "zh", "我用iPhone 15拍照"),
        (["a", "", "b"], "en", "a b"),
        ([], "en", ""),
    ],
)
def test_join(words, language, text):
    assert join_words(words, language) == text


@given(MIXED, st.sampled_from(["zh", "ja", "th", "en", "fr"]))
def test_nothing_is_lost_or_added(text, language):
    words = split_words(text, language)
    assert bare("".join(words)) == bare(text)
    assert bare(join_words(words, language)) == bare(text)


@given(MIXED, st.sampled_from(["zh", "ja", "th"]))
def test_characters_come_back_from_their_text(text, language):
    units = split_words(text, language)
    assert split_words(join_words(units, language), language) == units


@given(st.lists(st.text("abcä'-", min_size=1), max_size=8), st.sampled_from(["en", "fr", "de"]))
def test_words_come_back_from_their_text(words, language):
    assert split_words(join_words(words, language), language) == words


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        ((" Good", " morning", ".", " We"), (" Good", " morning.", " We")),
        ((" 3", ",", "5", " %"), (" 3,5 %",)),  # a mark with its space, as in French
        ((" merci", " !"), (" merci !",)),
        ((" (", "a", ")"), (" (a)",)),
        (("今", "日", "。", "は"), ("今", "日。", "は")),
        ((".", " So"), (".", " So")),
        ((), ()),
    ],
)
def test_marks_that_come_late_belong_to_their_word(said, whole):
    found = whole_words([TimedWord(text, 0.0, 0.0) for text in said])
    assert tuple("".join(part.text for part in parts) for parts in found) == whole


@pytest.mark.parametrize(
    ("word", "draft", "whole"),
    [
        (" danken", ". Wir", False),
        (" danken", "  Wir", True),
        (" danken", " ", False),
        (" merci", " !", False),
        (" danken.", "", True),
        (" danken.", "”", False),
        (" danken", "", False),
        ("日", "", True),
        ("日", "。", False),
        ("日", "本", True),
        ("", "", True),
    ],
)
def test_a_word_is_whole_when_nothing_can_be_added(word, draft, whole):
    assert is_whole(word, draft) == whole
