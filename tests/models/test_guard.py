"""Loops are cut after their first round; honest repetition is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.models.guard import cut_loop, invented, led_astray, understood
from dragoman.models.whisper.model import most_tokens


def test_honest_text_is_kept():
    assert cut_loop([], [1, 2, 3, 4, 5]) == 5
    assert cut_loop([], [1, 2, 1, 2, 3]) == 5  # said twice: people do
    assert cut_loop([], [1, 2, 3, 4, 1, 2, 3, 4]) == 8
    assert cut_loop([], [7, 7, 7, 7]) == 4


def test_a_loop_keeps_its_first_round():
    assert cut_loop([], [9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2]) == 4
    assert cut_loop([], [7] * 5) == 1
    assert cut_loop([], [7] * 50) == 1


def test_a_long_phrase_is_not_said_twice():
    assert cut_loop([], [9, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]) == 6
    assert cut_loop([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7]) == 0
    assert cut_loop([], [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5]) == 11


def test_what_was_said_counts():
    assert cut_loop([1, 2, 3, 1, 2, 3], [1, 2, 3, 4]) == 0
    assert cut_loop([5, 1, 2, 3], [1, 2, 3, 1, 2, 3]) == 0


def test_a_loop_long_ago_silences_nobody():
    assert cut_loop([7] * 5 + list(range(100, 172)), [1, 2]) == 2


def test_the_first_of_several_loops_is_cut():
    assert cut_loop([], [1, 2, 3] * 3 + [9] + [1, 2, 3] * 3) == 3
    # Many tokens that stand twice are no loop; the phrase after them is.
    pairs = [7, 7, 1, 7, 7, 2, 7, 7, 3, 7, 7, 4]
    assert cut_loop([], [*pairs, *[20, 21, 22] * 3]) == len(pairs) + 3


def test_a_phrase_may_hold_a_word_twice():
    assert cut_loop([], [1, 1, 2, 3] * 3) == 4


def test_a_phrase_of_a_sentence_s_length_may_be_said_twice():
    assert cut_loop([], [*range(24)] * 2) == 24
    assert cut_loop([], [*range(25)] * 2) == 50


@given(
    st.lists(st.integers(0, 30), max_size=12),
    st.lists(st.integers(31, 60), min_size=2, max_size=20, unique=True),
    st.integers(3, 6),
)
def test_any_phrase_said_often_is_cut(before: list[int], phrase: list[int], rounds: int):
    before = list(dict.fromkeys(before))
    assert cut_loop([], before + phrase * rounds) == len(before) + len(phrase)


@given(st.lists(st.integers(0, 5), max_size=30), st.lists(st.integers(0, 5), max_size=30))
def test_never_keeps_more_than_there_is(said: list[int], draft: list[int]):
    assert 0 <= cut_loop(said, draft) <= len(draft)


def test_unsure_words_in_silence_are_invented():
    assert invented(0.9, [-1.5, -2.0])
    assert not invented(0.9, [-0.1, -0.2])  # sure of its words
    assert not invented(0.1, [-1.5, -2.0])  # hears somebody
    assert not invented(0.6, [-1.5, -2.0])  # may hear somebody
    assert invented(0.61, [-1.01, -1.01])  # the bounds that Whisper has been used with ever since
    assert not invented(0.9, [-1.5, -0.5])  # just sure enough
    assert not invented(0.9, [])
    assert not invented(None, [-1.5, -2.0])  # cannot tell


def test_a_language_that_is_not_understood_is_told_by_its_tokens():
    assert understood([-0.99] * 12, final=False)
    assert not understood([-1.01] * 12, final=False)
    assert not understood([-1.01] * 12, final=True)
    assert not understood([-2.1, 0.0] * 6, final=True)  # the mean counts: -1.05
    assert understood([-1.9, 0.0] * 6, final=True)
    # With few tokens it is better to wait, as long as that is possible.
    assert understood([-0.89] * 11, final=False)
    assert not understood([-0.91] * 11, final=False)
    assert understood([-3.0] * 11, final=True)
    assert understood([], final=False)
    # Of many, the newest 24 count: (23 x -0.1 + -20) / 24 = -0.93, and without the first -0.1.
    assert not understood([-22.0, *[-0.1] * 23], final=False)
    assert understood([-22.0, *[-0.1] * 24], final=False)


def test_more_sound_holds_more_tokens():
    assert most_tokens(2000, english=True) == 24
    assert most_tokens(4000, english=True) == 38
    assert most_tokens(4000, english=False) == 90


def test_what_sounds_foreign_must_be_surer_however_little_there_is():
    for count in (1, 11, 12, 24):
        for final in (False, True):
            assert understood([-0.6] * count, final=final, foreign=True)
            assert not understood([-0.61] * count, final=final, foreign=True)
    assert understood([], final=False, foreign=True)
    assert understood([-9.0, *[-0.6] * 24], final=False, foreign=True)  # the newest 24


@pytest.mark.parametrize(
    ("before", "said", "draft", "astray"),
    [
        (range(20), [], [30, *range(5, 13), 31], True),  # eight in a row, said again
        (range(20), [], [30, *range(5, 12), 31], False),
        (range(20), [], [*range(5, 12), 30, 12], False),  # with another between
        (range(12, 20), [], range(12, 20), True),  # all of it
        (range(13, 20), [], range(13, 20), False),
        (range(20), [], range(30, 50), False),
        (range(20), [], [7] * 5, True),  # a loop
        (range(20), [30, 31, 32, 33, 34, 35], [30, 31, 32, 33, 34, 35, 36], True),
        ([], [], [], False),
    ],
)
def test_what_was_said_before_leads_astray(before, said, draft, astray):
    assert led_astray([*before], said, [*draft]) is astray
