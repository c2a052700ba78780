"""Texts to phonemes, with a reader that shouts; and long phonemes in pieces."""

import pytest

from dragoman.voices import espeak
from dragoman.voices.phonemes import cut, transcribe


@pytest.fixture
def read(monkeypatch):
    """The clauses that were read, and the voice."""
    asked = []

    def phonemes(clauses, voice):
        asked.append((clauses, voice))
        return [clause.upper() for clause in clauses]

    monkeypatch.setattr(espeak, "phonemes", phonemes)
    return asked


@pytest.mark.parametrize(
    ("text", "clauses", "said"),
    [
        ("yes, no!", ["yes", "no"], "YES, NO!"),
        ("yes", ["yes"], "YES"),
        ("yes, ... no", ["yes", "no"], "YES, NO"),  # a mark of nothing is no mark
        ('"yes." no', ['"yes', "no"], '"YES. NO'),
        ("at 10.30 yes", ["at 10.30 yes"], "AT 10.30 YES"),
        ("yes। no", ["yes", "no"], "YES. NO"),
        ("...", [], ""),
    ],
)
def test_marks_are_said_behind_their_clauses(read, text, clauses, said):
    assert transcribe(text, "xy") == said
    assert read == [(clauses, "xy")]


@pytest.mark.parametrize(
    ("phonemes", "longest", "pieces"),
    [
        ("aaa", 3, ["aaa"]),
        ("aaa bbb ccc", 6, ["aaa", "bbb", "ccc"]),  # between words
        ("a, bb. c, dd ee", 10, ["a, bb.", "c, dd ee"]),  # rather behind a sentence
        ("a, bb: cc, dd ee", 11, ["a, bb: cc,", "dd ee"]),  # or a clause, the last that fits
        ("abcdefgh", 3, ["abc", "def", "gh"]),  # else anywhere
        ("", 3, []),
    ],
)
def test_pieces_are_cut_at_the_best_place(phonemes, longest, pieces):
    assert cut(phonemes, longest) == pieces
