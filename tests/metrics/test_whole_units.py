"""When words and characters were whole, by hand."""

import pytest

from dragoman.metrics.whole_units import unit_chunks


@pytest.mark.parametrize(
    ("said", "words", "characters"),
    [
        ([(" a", 1), (" b", 2)], [1, 2], [1, 2, 2]),  # the space came with the second word
        ([("  Hal", 1), ("lo \n", 3)], [3], [1, 1, 1, 3, 3]),  # what is around a text is none of it
        ([("ab", 1), (".", 4), (" c", 5)], [1, 5], [1, 1, 4, 5, 5]),  # a stop makes nothing late
        ([("8", 1), (",", 2), ("5", 3), (" %", 4)], [3, 4], [1, 2, 3, 4, 4]),
        ([("…", 1), ("so", 2)], [2], [1, 2, 2]),  # a word that a mark begins is whole with itself
        ([("e", 1), ("\u0301", 2)], [2], [1, 2]),  # an accent that comes later
        ([("a ", 1), (" b", 2)], [1, 2], [1, 1, 2, 2]),
        ([(" ", 1)], [], []),
        ([], [], []),
    ],
)
def test_a_word_is_whole_with_its_last_letter(said, words, characters):
    assert unit_chunks(said, "word") == words
    assert unit_chunks(said, "char") == characters
