"""Tokens are bytes; words are what a reader sees."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.models.whisper.tokens import (
    ENGLISH_ONLY_END,
    Vocabulary,
    WhisperUnits,
    _begins_word,
    _bytes_of,
    _decoded,
    _languages,
    _printable_bytes,
)

SPECIAL = [
    *("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|ja|>", "<|translate|>"),
    *("<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nocaptions|>"),
    *("<|notimestamps|>", "<|0.00|>", "<|0.02|>"),
]


def byte_names() -> list[str]:
    """A vocabulary of single bytes, named as GPT-2 names them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names, others = [], 0
    for byte in range(256):
        if byte in plain:
            names.append(chr(byte))
        else:
            names.append(chr(256 + others))
            others += 1
    return names


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    folder = tmp_path_factory.mktemp("whisper")
    (folder / "vocabulary.txt").write_text("\n".join(byte_names() + SPECIAL) + "\n")
    return Vocabulary.load(folder)


def tokens_of(text: str) -> list[int]:
    return list(text.encode())


def test_special_tokens_and_languages(vocabulary: Vocabulary):
    assert vocabulary.languages == {"en": 258, "de": 259, "ja": 260}
    assert (vocabulary.end, vocabulary.start, vocabulary.translate) == (256, 257, 261)
    assert list(vocabulary.times) == [266, 267, 268]
    assert vocabulary.multilingual
    assert vocabulary.text([257, 259, *tokens_of(" Hallo"), 256]) == " Hallo"


def test_json_vocabulary_reads_the_same(tmp_path: Path, vocabulary: Vocabulary):
    (tmp_path / "vocabulary.json").write_text(json.dumps(byte_names() + SPECIAL))
    assert Vocabulary.load(tmp_path) == vocabulary


def test_words_carry_their_space_and_punctuation(vocabulary: Vocabulary):
    tokens = tokens_of(" Yes, naïve folk")
    grouped = WhisperUnits(vocabulary, spaceless=False).words(tokens, ended=False)
    assert grouped.words == (" Yes,", " naïve")
    assert grouped.ends == (5, 12)
    assert grouped.tail == " folk"
    ended = WhisperUnits(vocabulary, spaceless=False).words(tokens, ended=True)
    assert ended.words[-1] == " folk"
    assert ended.ends[-1] == len(tokens)


def test_spaceless_scripts_split_by_letter(vocabulary: Vocabulary):
    grouped = WhisperUnits(vocabulary, spaceless=True).words(tokens_of("世界、OK 🙂"), ended=True)
    assert grouped.words == ("世", "界、OK", " 🙂")


def test_a_letter_cut_in_two_is_not_printed(vocabulary: Vocabulary):
    cut = tokens_of(" caf\u00e9")[:-1]
    assert WhisperUnits(vocabulary, spaceless=False).words(cut, ended=False).tail == " caf"


def test_bytes_that_are_no_letter_do_not_swallow_the_rest(vocabulary: Vocabulary):
    tokens = [*tokens_of(" a"), 0xC3, *tokens_of(" b")]
    units = WhisperUnits(vocabulary, spaceless=False)
    assert units.words(tokens, ended=True).words == (" a\ufffd b",)


@given(st.text(max_size=40), st.booleans(), st.booleans())
def test_grouping_loses_nothing(text: str, spaceless: bool, ended: bool):
    names = tuple(byte_names() + SPECIAL)
    vocabulary = Vocabulary(names, {}, 257, 256, 261, 262, 264, 265, 266)
    tokens = tokens_of(text)
    grouped = WhisperUnits(vocabulary, spaceless=spaceless).words(tokens, ended=ended)
    assert "".join(grouped.words) + grouped.tail == text
    assert list(grouped.ends) == sorted(set(grouped.ends))
    for count, end in enumerate(grouped.ends, start=1):
        assert "".join(grouped.words[:count]) == vocabulary.text(tokens[:end])


def test_a_foreign_vocabulary_is_refused(tmp_path: Path):
    with pytest.raises(DragomanError, match=r"no vocabulary\.txt"):
        Vocabulary.load(tmp_path)
    (tmp_path / "vocabulary.txt").write_text("a\nb\n")
    with pytest.raises(DragomanError, match="not Whisper's"):
        Vocabulary.load(tmp_path)
    (tmp_path / "vocabulary.json").write_text("[")
    with pytest.raises(DragomanError, match="is damaged"):
        Vocabulary.load(tmp_path)


def test_the_letters_that_stand_for_bytes():
    table = _printable_bytes()
    assert table == {name: byte for byte, name in enumerate(byte_names())}
    known = {"Ġ": 0x20, "Ċ": 0x0A, "!": 0x21, "~": 0x7E, "¡": 0xA1, "¬": 0xAC, "Ń": 0xAD, "®": 0xAE}
    assert {name: table[name] for name in known} == known
    assert _bytes_of("<|de|>") == b""
    assert (_bytes_of("<|x"), _bytes_of("x|>")) == (b"<|x", b"x|>")
    assert _bytes_of("a今b") == b"ab"  # what stands for no byte


@pytest.mark.parametrize(
    ("letters", "text"),
    [
        (b"\xe2\x82\xac", "€"),
        (b"\xe2\x82", None),  # it lacks a byte that may come
        (b"a\xff", "a\ufffd"),  # this one can not become a letter
        (b"\xe2\x82x", "\ufffdx"),
    ],
)
def test_bytes_wait_as_long_as_they_may_become_a_letter(letters, text):
    assert _decoded(letters) == text


@pytest.mark.parametrize(
    ("text", "with_spaces", "without"),
    [(" a", True, True), ("a", False, False), ("今天", False, True), ("。", False, False)],
)
def test_where_words_begin(text, with_spaces, without):
    assert (_begins_word(text, False), _begins_word(text, True)) == (with_spaces, without)


def test_the_languages_of_a_vocabulary(vocabulary: Vocabulary):
    ids = {"<|endoftext|>": 0, "<|start|>": 2, "<|en|>": 3, "<|de|>": 4, "<|translate|>": 5}
    assert _languages(ids, 2, 5) == {"en": 3, "de": 4}
    assert _languages(ids | {"<|endoftext|>": ENGLISH_ONLY_END}, 2, 5) == {"en": 3}
    assert _languages({"<|endoftext|>": 0}, 2, 3) == {"en": 2}
    assert WhisperUnits.of(vocabulary, "ja").spaceless
    assert not WhisperUnits.of(vocabulary, "de").spaceless
