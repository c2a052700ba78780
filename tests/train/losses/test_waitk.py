"""What wait-k training lets each target unit see."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.train.losses.waitk import (
    ctc_marks,
    draw_k,
    ends_of,
    seen_adaptive,
    seen_fixed,
    target_words,
)
from dragoman.train.nets.layers import HIDDEN, seen_bias

BLANK = 3
ENDS_WORD = torch.tensor([False, True, False, False])  # unit 1 ends a word; 0 and 2 do not


def ends_by_hand(labels):
    """States heard at each word's end: collapse, drop blanks, look at the marks."""
    ends, previous = [], None
    for state, label in enumerate(labels):
        if label != previous and label != BLANK and ENDS_WORD[label]:
            ends.append(state + 1)
        previous = label
    return ends


def test_fixed_detection_shows_r_more_states_per_word():
    words = torch.tensor([[0, 0, 1, 2], [0, 1, 2, 3]])
    seen = seen_fixed(2, 7, words, torch.tensor([100, 20]))
    assert seen.tolist() == [[14, 14, 21, 28], [14, 20, 20, 20]]
    bias = seen_bias(seen, 100)
    assert (bias[0, 0, 0, :14] == 0).all()
    assert (bias[0, 0, 0, 14:] == HIDDEN).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=25), st.integers(1, 4))
def test_ctc_detection_follows_the_labels(labels, k):
    length = len(labels)
    marks = ctc_marks(torch.tensor([labels]), torch.tensor([length]), ENDS_WORD)
    ends = ends_of(marks, torch.tensor([length]))
    expected = ends_by_hand(labels)
    assert int(marks.sum()) == len(expected)
    assert ends[0].tolist() == (expected + [length] * length)[:length]
    words = torch.arange(30).unsqueeze(0)
    seen = seen_adaptive(k, ends, words, torch.tensor([length]))[0].tolist()
    assert seen == [(expected + [length] * 40)[k + v - 1] for v in range(30)]


def test_items_with_fewer_words_and_padding():
    labels = torch.tensor([[1, 3, 1, 0, 1], [0, 1, 1, 1, 3]])
    lengths = torch.tensor([5, 3])
    marks = ctc_marks(labels, lengths, ENDS_WORD)
    assert marks.sum(1).tolist() == [3, 1]
    assert ends_of(marks, lengths).tolist() == [[1, 3, 5, 5, 5], [2, 3, 3, 3, 3]]


def test_pieces_of_a_word_see_alike():
    tokens = torch.tensor([[0, 1, 1, 2, 0, 1]])
    assert target_words(tokens, ENDS_WORD).tolist() == [[0, 0, 1, 2, 2, 2]]


def test_multi_path_draws_every_k():
    assert {draw_k(100, 5) for _ in range(200)} == {1, 2, 3, 4, 5}
    assert {draw_k(2, 5) for _ in range(50)} == {1, 2}
    assert {draw_k(0, 5) for _ in range(5)} == {1}  # of sources without any word
