"""What a translator's tokens say of the words of its source, by hand."""

import numpy as np
import pytest

from dragoman.models.cascade.owners import Owned, nothing, over_words, owners, room_for
from dragoman.models.search import Found


def test_a_translation_may_have_twice_the_units_of_its_source_and_ten():
    assert [room_for(pieces, said) for pieces, said in ((0, 0), (5, 0), (5, 3), (3, 20))] == [
        10,
        20,
        17,
        -4,
    ]


@pytest.mark.parametrize(
    ("pieces", "words", "wanted"),
    [
        (("▁the", "▁se", "a"), (" the", " sea"), [0, 1, 1]),
        (("▁a", "bcd"), (" ab", " cd"), [0, 1]),
        (("▁abc", "d"), (" ab", " cd"), [0, 1]),
        (("▁aabb", "cc"), (" ab", " c"), [0, 1]),  # letters that are written doubly
        (("▁", "ab", "▁"), (" ab",), [0, 0, 0]),  # spaces have no letters
        (("▁▁▁▁▁▁a", "aaab"), (" aaaa", " b"), [0, 0]),  # however many there are
        (("▁",), (" ",), [0]),
        ((), (" a",), []),
    ],
)
def test_a_piece_belongs_to_the_word_in_which_its_middle_lies(pieces, words, wanted):
    assert owners(pieces, words) == wanted


class Letters:
    """Tokens are characters."""

    def text(self, tokens):
        return "".join(map(chr, tokens))


def found(text: str, *, ended: bool) -> Found:
    """It looks at a tag, three pieces and the end of the source."""
    looks = [np.float32([0.1, 0.2, 0.3, 0.25, 0.15])] * len(text)
    log_probs = tuple(-0.1 * place for place in range(len(text)))
    return Found(tuple(map(ord, text)), log_probs, tuple(looks), ended)


@pytest.mark.parametrize(
    ("text", "ended", "closed", "said", "kept"),
    [
        ("ab.", True, True, "", ("ab.", True)),
        ("ab.", True, False, "", ("ab", True)),  # it may go on: no full stop
        ("ab.", False, False, "", ("ab.", False)),  # more would have followed
        ("ab?!", True, False, "", ("ab", True)),
        (".", True, False, "", ("", True)),
        ("xababababab", True, True, "", ("xab", False)),  # cut short where it loops
        ("aaaa", True, True, "aa", ("", False)),  # with what was said before
    ],
)
def test_a_continuation_as_far_as_it_can_be_trusted(text, ended, closed, said, kept):
    owned = Owned([0, 0, 1], 2, begin=1)
    made = over_words(
        found(text, ended=ended), tuple(map(ord, said)), owned, Letters(), closed=closed
    )
    assert (Letters().text(made.tokens), made.ended) == kept
    count = len(made.tokens)
    assert made.log_probs == found(text, ended=ended).log_probs[:count]
    np.testing.assert_allclose(made.attention, np.float32([[0.5, 0.25]] * count).reshape(count, 2))


def test_nothing_ends_what_was_said():
    for said, ended in (((), False), ((7,), True)):
        made = nothing(said, 3)
        assert (made.tokens, made.log_probs, made.attention.shape) == ((), (), (0, 3))
        assert made.ended is ended
