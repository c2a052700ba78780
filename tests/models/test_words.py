"""From pieces to words, by hand."""

import pytest

from dragoman.models.exported.pieces import Pieces
from dragoman.models.words import Piece, Words, group, unspaced, without_stop, words_after


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


SPECIAL = ("", "", "", "<unk>")
PREFIX = Pieces((*SPECIAL, "▁oft", "▁seh", "en", "▁rot", "▁"), "prefix")
SUFFIX = Pieces((*SPECIAL, "oft▁", "seh", "en▁", "rot▁", "▁"), "suffix")


@pytest.mark.parametrize(
    ("said", "tokens", "words"),
    [
        ([5], (6,), ("en",)),
        ([4, 5], (6, 7), ("en", " rot")),
        ([4, 7], (5, 6), (" sehen",)),  # what was said before is whole
        ([5], (8, 7), (" rot",)),  # a space that comes late
        ([5, 8], (7,), (" rot",)),  # or came by itself
        ([], (6,), (" en",)),  # another sentence
        ([4, 3], (7,), (" rot",)),  # what prints nothing is no word to go on with
        ([5], (), ()),
    ],
)
@pytest.mark.parametrize("units", [PREFIX, SUFFIX], ids=["prefix", "suffix"])
def test_a_word_that_was_said_as_whole_may_go_on(units, said, tokens, words):
    assert words_after(units.words, said, tokens, ended=True).words == words


def test_of_a_word_that_goes_on_the_end_may_be_open():
    grouped = words_after(PREFIX.words, [5], (6,), ended=False)
    assert (grouped.words, grouped.tail) == ((), "en")
    grouped = words_after(PREFIX.words, [5], (6, 7), ended=False)
    assert (grouped.words, grouped.ends, grouped.tail) == (("en",), (1,), " rot")


class Letters:
    """Tokens are characters."""

    def text(self, tokens):
        return "".join(map(chr, tokens))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *[("ab.", 2), ("ab", 2), ("a.b", 3), ("ab?!", 2), ("...", 0), ("", 0), ("ab. ", 4)],
        *[("ab…", 2), ("ab-", 2), ("ab،", 2), ("ab۔", 2), ("ab။", 2), ("ab：", 2)],
    ],
)
def test_the_stop_at_the_end_of_a_text(text, count):
    assert without_stop(Letters(), [ord(letter) for letter in text]) == count


@pytest.mark.parametrize("stop", [".▁", "▁."])
def test_a_stop_may_have_its_space(stop):
    units = Pieces((*SPECIAL, "oft▁", stop), "suffix")
    assert without_stop(units, [4, 5]) == 1


@pytest.mark.parametrize(
    ("word", "printed"),
    [
        ("世", "世"),
        (" 世", "世"),  # no space is written beside Chinese,
        ("世 ", "世"),
        ("。 ", "。"),  # nor beside its marks
        (" York", " York"),  # but beside letters of others,
        ("York ", "York "),
        ("York", "York"),
        (" 5", " 5"),
        (" 5世", " 5世"),
        (" 世5 ", "世5 "),
        (" ,", ","),  # though not before their marks
        (" (", "("),
        (", ", ", "),
        (" สวัสดี ", " สวัสดี "),  # Thai sets phrases apart
        (" ", ""),
        ("", ""),
    ],
)
def test_where_words_are_not_set_apart_some_spaces_are_written_all_the_same(word, printed):
    assert unspaced(word) == printed
