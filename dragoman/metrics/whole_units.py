"""When the words or characters of what was said were whole."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from dragoman.metrics.instance import Unit


def unit_chunks(said: Iterable[tuple[str, int]], unit: Unit) -> list[int]:
    """For every word or character of what was said, the chunk after which it was whole; `said` are
    texts with their spacing and the chunks after which they were said.

    A word is whole with its last letter or digit, or sign above or below one: the stop of a
    sentence may be said later, when it is clear that the sentence was over, and does not make its
    last word late.
    """
    letters: list[tuple[str, int]] = [(c, chunk) for text, chunk in said for c in text]
    while letters and letters[0][0].isspace():
        letters.pop(0)
    while letters and letters[-1][0].isspace():
        letters.pop()
    if unit == "char":
        return [chunk for _, chunk in letters]
    chunks: list[int] = []
    inside = False
    for letter, chunk in letters:
        if letter.isspace():
            inside = False
        elif not inside:
            chunks.append(chunk)
            inside = True
        elif letter.isalnum() or unicodedata.category(letter).startswith("M"):
            chunks[-1] = chunk
    return chunks
