"""Where a text goes on that was begun elsewhere."""

import pytest

from dragoman.text.again import Overlap, count_letters, overlap


@pytest.mark.parametrize(
    ("known", "words", "expected"),
    [
        ("a b c", "a b c d e", (3, 3)),
        ("Good morning", "good morning, everyone", (2, 2)),
        ("the house is green", "the houses are green and old", (4, 4)),
        ("we go there", "we all go there now", (3, 4)),  # one more on the way
        ("we all go there", "we go there now", (4, 3)),  # one less
        ("one two three", "one two", (2, 2)),  # the rest is still to come
        ("one two three four", "one two xyz", (2, 2)),  # a guess at what comes is no known word
        ("one two three four", "one two tree", (3, 3)),  # one that is nearly right is
        ("one two three", "one two three xyz", (3, 3)),  # what follows all that is known is new
        ("one two", "", (0, 0)),
        ("", "one two", (0, 0)),
    ],
)
def test_the_beginning_that_says_the_same(known, words, expected):
    assert overlap(known.split(), words.split()) == Overlap(*expected)


def test_letters_are_counted_however_words_are_cut():
    assert count_letters(" Good morning .") == count_letters("Good") + count_letters(" morning.")
