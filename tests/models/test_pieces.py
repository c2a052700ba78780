"""Words and word counts from units of exported nets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.models.exported.counting import Counted, Evidence, WordCounter
from dragoman.models.exported.pieces import Pieces
from dragoman.models.words import words_after

SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
SUFFIX = Pieces((*SPECIAL, "Hal", "lo▁", "Welt▁", "!▁", "▁"), "suffix")
PREFIX = Pieces((*SPECIAL, "▁Hal", "lo", "▁Welt", "!", "▁"), "prefix")
BLANK = 9


def test_with_the_space_behind_a_word_is_whole_at_once():
    grouped = SUFFIX.words([4, 5, 6, 4], ended=False)
    assert (grouped.words, grouped.ends, grouped.tail) == ((" Hallo", " Welt"), (2, 3), " Hal")


def test_with_the_space_in_front_a_word_is_whole_when_the_next_begins():
    grouped = PREFIX.words([4, 5, 6, 7], ended=False)
    assert (grouped.words, grouped.ends, grouped.tail) == ((" Hallo",), (2,), " Welt!")
    grouped = PREFIX.words([4, 5, 6, 7], ended=True)
    assert (grouped.words, grouped.ends, grouped.tail) == ((" Hallo", " Welt!"), (2, 4), "")


def test_special_units_and_bare_spaces_print_nothing():
    assert SUFFIX.words([1, 8, 4, 5, 2], ended=True).words == (" Hallo",)


def test_a_mark_that_comes_late_stands_right_behind_its_word():
    assert SUFFIX.words([6, 7], ended=True).words == (" Welt", "!")
    french = Pieces(SUFFIX.names, "suffix", language="fr")
    assert french.words([6, 7], ended=True).words == (" Welt", " !")


@pytest.mark.parametrize(
    ("names", "marking", "text"),
    [
        (("50▁", "%▁", "von▁"), "suffix", " 50 % von"),
        (("50", "%▁", "von▁"), "suffix", " 50% von"),
        (("▁50", "▁%", "▁von"), "prefix", " 50 % von"),
        (("▁50", "%", "▁von"), "prefix", " 50% von"),
    ],
)
def test_a_percent_sign_stands_where_the_net_has_put_it(names, marking, text):
    """German and Spanish write a space before it, English does not, and a net has learned which:
    whatever was said by then."""
    pieces = Pieces((*SPECIAL, *names), marking, language="de")
    assert "".join(pieces.words([4, 5, 6], ended=True).words) == text
    for said in (1, 2):
        before = pieces.words(range(4, 4 + said), ended=True).words
        after = words_after(pieces.words, range(4, 4 + said), range(4 + said, 7), ended=True).words
        assert "".join((*before, *after)) == text


def test_without_spaces_every_piece_is_a_word():
    pieces = Pieces((*SPECIAL, "▁世", "界"), "prefix", spaced=False)
    grouped = pieces.words([4, 5], ended=False)
    assert (grouped.words, grouped.ends, grouped.tail) == (("世", "界"), (1, 2), "")


@pytest.mark.parametrize(
    ("names", "marking", "text"),
    [
        (("▁我", "爱", "▁New", "▁York", "▁的", "雪"), "prefix", "我爱 New York的雪"),
        (("我", "爱▁", "New▁", "York▁", "的▁", "雪▁"), "suffix", "我爱New York 的雪"),
    ],
)
def test_words_of_other_scripts_keep_the_space_between_them(names, marking, text):
    pieces = Pieces((*SPECIAL, *names), marking, spaced=False)
    assert "".join(pieces.words(range(4, 10), ended=True).words) == text


def test_the_unit_of_a_mark():
    assert (SUFFIX.mark("!"), PREFIX.mark("!"), PREFIX.mark(",")) == ((7,), (7,), ())
    assert Pieces(PREFIX.names, "prefix", spaced=False).mark("!") == ()


def test_words_among_source_units():
    assert SUFFIX.count([4, 5, 5, 6, 4]) == 3
    assert PREFIX.count([4, 5, 6]) == 2  # the last has begun


def test_without_spaces_every_source_unit_is_a_word():
    pieces = Pieces((*SPECIAL, "世", "界▁", "▁"), "suffix", spaced=False)
    assert pieces.count([4, 5, 6, 4]) == 3


def labels(*row):
    return Evidence(labels=np.array(row))


def test_ctc_labels_are_collapsed_before_they_are_counted():
    counter = WordCounter(SUFFIX, BLANK)
    assert counter.hear(labels(9, 4, 4, 9, 5, 5, 9, 5, 6)) == Counted(3, 0)  # Hal lo lo Welt
    assert counter.hear(labels(6, 6, 9, 6)) == Counted(4, 0)  # goes on in the same Welt
    assert WordCounter(None, BLANK).hear(labels(9, 4, 5)) == Counted(0, 0)


@given(
    st.lists(st.tuples(st.integers(4, 9), st.floats(0, 1)), max_size=40),
    st.integers(1, 7),
)
def test_evidence_may_come_in_pieces(states, size):
    evidence = Evidence(np.array([a for a, _ in states]), np.array([b for _, b in states]))
    counter = WordCounter(SUFFIX, BLANK)
    for start in range(0, len(states), size):
        counter.hear(evidence.part(slice(start, start + size)))
    assert counter.counted == WordCounter(SUFFIX, BLANK).hear(evidence)


def test_neighbouring_word_ends_are_one():
    counter = WordCounter(None, BLANK)
    counter.hear(Evidence(boundaries=np.array([0.1, 0.9, 0.8])))
    assert counter.hear(Evidence(boundaries=np.array([0.7, 0.5, 0.6]))) == Counted(0, 2)
