"""Subword units: where words end in a row of pieces.

Three ways of marking words are in use. Only with the second and the third does a piece itself say
that its word is over; with the first that is known when the next word begins, one piece too late
for an interpreter in a hurry.

    prefix    ▁trans lation ▁works        SentencePiece's own; Whisper's pieces, with a space
    suffix    trans lation▁ works▁        SentencePiece with treat_whitespace_as_suffix
    joined    trans@@ lation works        subword-nmt and fastBPE
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Marking = Literal["prefix", "suffix", "joined"]

SPACES = ("▁", "Ġ", " ")
"""How a space is written in pieces: SentencePiece, byte-level BPE, decoded."""
JOINER = "@@"


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
