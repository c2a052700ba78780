"""Loops are cut after their first round; honest repetition is left alone."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.models.whisper_guard import cut_loop, is_babble


def test_honest_text_is_kept():
    assert cut_loop([], [1, 2, 3, 4, 5]) == 5
    assert cut_loop([], [1, 2, 1, 2, 3]) == 5  # said twice: people do
    assert cut_loop([], [7, 7, 7, 7]) == 4


def test_a_loop_keeps_its_first_round():
    assert cut_loop([], [9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2]) == 4
    assert cut_loop([], [7] * 5) == 1
    assert cut_loop([], [7] * 50) == 1


def test_what_was_said_counts():
    assert cut_loop([1, 2, 3, 1, 2, 3], [1, 2, 3, 4]) == 0
    assert cut_loop([5, 1, 2, 3], [1, 2, 3, 1, 2, 3]) == 0


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


def test_babble():
    assert is_babble("ha ha " * 30)
    assert not is_babble("ha ha ha")
    assert not is_babble("There was absolutely no reason for her to tell the entire company.")
