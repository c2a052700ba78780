"""Text to phonemes through eSpeak NG, with the punctuation that gives a sentence its melody."""

from __future__ import annotations

import re

from dragoman.voices import espeak
from dragoman.voices.base import is_speakable

_MARKS = re.compile(r"([;:,.!?…—–।]+)[\"'”’»)\]]*(?:\s+|$)")


def transcribe(text: str, voice: str) -> str:
    """A text in the International Phonetic Alphabet: `t͡ʃˈɪldɹən, kˈʌm!`, ties included.

    eSpeak NG leaves punctuation out, so it reads the text clause by clause.
    """
    parts = _MARKS.split(text)  # clause, mark, clause, mark, ..., clause
    clauses = zip(parts[::2], [*parts[1::2], ""], strict=True)
    spoken = [(clause, mark) for clause, mark in clauses if is_speakable(clause)]
    read = espeak.phonemes([clause for clause, _ in spoken], voice)
    marks = [mark.replace("।", ".") for _, mark in spoken]
    return " ".join(phones + mark for phones, mark in zip(read, marks, strict=True))


def cut(phonemes: str, longest: int) -> list[str]:
    """Pieces of no more than so many characters, cut at the best place before that."""
    pieces = []
    while len(phonemes) > longest:
        head = phonemes[:longest]
        place = max(head.rfind(mark) + 1 for mark in ".!?…") or max(
            head.rfind(mark) + 1 for mark in ";:,—–"
        )
        place = place or head.rfind(" ") + 1 or longest
        pieces.append(phonemes[:place].strip())
        phonemes = phonemes[place:]
    return [piece for piece in [*pieces, phonemes.strip()] if piece]
