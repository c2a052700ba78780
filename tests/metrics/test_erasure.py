"""What was shown and taken back."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dragoman.metrics.erasure import erased_units


def test_interim_text_that_becomes_final_is_not_erased():
    assert erased_units([("", "the old"), ("the old", " man"), (" man", "")]) == 0


def test_spaces_around_a_text_are_not_shown_and_not_erased():
    assert erased_units([("", " ab "), (" ab", "")], "char") == 0
    assert erased_units([("", "ab "), ("", "a")], "char") == 1


def test_what_is_replaced_is_erased_with_all_that_follows():
    assert erased_units([("", "the old house"), ("", "the cold house")]) == 2
    assert erased_units([("", "abc"), ("", "abd")], "char") == 1
    assert erased_units([("", "the old"), ("", "")]) == 2


def test_final_text_is_never_erased():
    assert erased_units([("the ", "old"), ("cold ", "house"), ("hut", "")]) == 1 + 1


words = st.lists(st.sampled_from("abc"), max_size=5).map(" ".join)


@given(st.lists(words, max_size=8))
def test_against_whole_displays(displays):
    """With nothing final, each display loses what it does not begin the next one with."""
    erased = 0
    for one, following in pairwise(displays):
        old, new = one.split(), following.split()
        common = [a == b for a, b in zip(old, new, strict=False)]
        kept = common.index(False) if False in common else len(common)
        erased += len(old) - kept
    assert erased_units([("", text) for text in displays]) == erased
