"""Subword units: where words end in a row of pieces.

Three ways of marking words are in use. Only with the second and the third does a piece itself say
that its word is over; with the first that is known when the next word begins, one piece too late
for an interpreter in a hurry.

    prefix    ▁trans lation ▁works        SentencePiece's own; Whisper's pieces, with a space
    suffix    trans lation▁ works▁        SentencePiece with treat_whitespace_as_suffix
    joined    trans@@ lation works        subword-nmt and fastBPE
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.errors import DragomanError

Marking = Literal["prefix", "suffix", "joined"]

SPACES = ("▁", "Ġ", " ")
"""How a space is written in pieces: SentencePiece, byte-level BPE, decoded."""
JOINER = "@@"


def marking_of(vocabulary: Iterable[str]) -> Marking:
    """How a vocabulary marks words, as most of its pieces tell."""
    votes: dict[Marking, int] = {"prefix": 0, "suffix": 0, "joined": 0}
    for piece in vocabulary:
        if len(piece) > 1:
            votes["prefix"] += piece.startswith(SPACES)
            votes["suffix"] += piece.endswith(SPACES)
            votes["joined"] += piece.endswith(JOINER)
    best = max(votes, key=lambda marking: votes[marking])
    if votes[best] == 0:
        raise DragomanError("This vocabulary marks no word boundaries that are known here.")
    return best


def word_ends(pieces: Sequence[str], marking: Marking, finished: bool = False) -> list[bool]:
    """For each piece, whether a word is known to end with it.

    `finished` says that nothing follows: the last piece then ends a word however it is marked.
    """
    if marking == "suffix":
        ends = [piece.endswith(SPACES) for piece in pieces]
    elif marking == "joined":
        ends = [not piece.endswith(JOINER) for piece in pieces]
    else:
        ends = [piece.startswith(SPACES) for piece in pieces[1:]] + [False] * bool(pieces)
    if finished and ends:
        ends[-1] = True
    return ends


@dataclass(frozen=True, slots=True)
class WholeWords:
    """The words that are over, and how many pieces they were made of."""

    words: tuple[str, ...]
    pieces: int


def whole_words(pieces: Sequence[str], marking: Marking, finished: bool = False) -> WholeWords:
    """The words that a row of pieces holds to their end; the rest may still grow."""
    words: list[str] = []
    begin = 0
    for index, ends in enumerate(word_ends(pieces, marking, finished)):
        if ends:
            words += join_pieces(pieces[begin : index + 1], marking).split()
            begin = index + 1
    return WholeWords(tuple(words), begin)


def join_pieces(pieces: Sequence[str], marking: Marking) -> str:
    """The text of pieces."""
    if marking == "joined":
        text = " ".join(pieces)
        return text.replace(f"{JOINER} ", "").removesuffix(JOINER)
    text = "".join(pieces)
    for space in SPACES:
        text = text.replace(space, " ")
    return text.strip()
