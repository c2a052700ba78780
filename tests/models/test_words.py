"""From pieces to words, by hand."""

import pytest

from dragoman.models.words import Piece, Words, group, without_stop


def test_a_word_is_whole_when_the_next_begins_or_the_text_is_over():
    pieces = [Piece(" in", begins=True), Piece("ter"), Piece(" pre", begins=True), Piece("t", 2)]
    assert group(pieces, ended=False) == Words((" inter",), (2,), " pret")
    assert group(pieces, ended=True) == Words((" inter", " pret"), (2, 5), "")
    assert group([], ended=True) == Words((), (), "")


def test_a_word_is_whole_with_the_piece_that_ends_it():
    pieces = [Piece("in"), Piece("ter▁", ends=True), Piece("x")]
    assert group(pieces, ended=False) == Words(("inter▁",), (2,), "x")


def test_spaces_are_no_word_and_stay_with_what_follows():
    pieces = [Piece(" ", begins=True), Piece(" a", begins=True), Piece(" ", begins=True)]
    assert group(pieces, ended=True) == Words(("  a",), (2,), " ")


class Letters:
    """Tokens are characters."""

    def text(self, tokens):
        return "".join(map(chr, tokens))


@pytest.mark.parametrize(
    ("text", "count"),
    [("ab.", 2), ("ab", 2), ("a.b", 3), ("ab?!", 2), ("...", 0), ("", 0), ("ab. ", 4), ("ab…", 2)],
)
def test_the_stop_at_the_end_of_a_text(text, count):
    assert without_stop(Letters(), [ord(letter) for letter in text]) == count
