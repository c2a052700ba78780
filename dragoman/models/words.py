"""From tokens to words: once, for every family of units.

A family says of each of its pieces whether a word begins or ends with it. A word is known to be
whole when a piece ends it, when the next word begins, or when the text is over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dragoman.text.languages import WITHOUT_SPACES
from dragoman.text.sentences import COMMAS, STOPS

MARKS = frozenset((*STOPS, *COMMAS, *"…-–—"))


@dataclass(frozen=True, slots=True)
class Piece:
    """What one token, or several that make sense together only, add to a text."""

    text: str  # with its spaces
    tokens: int = 1
    begins: bool = False  # a word begins with it
    ends: bool = False  # a word is over with it


@dataclass(frozen=True, slots=True)
class Words:
    """Tokens as words, with their spacing; `ends[i]` tokens are used up when `words[i]` is whole.

    `tail` is the text after the last whole word.
    """

    words: tuple[str, ...]
    ends: tuple[int, ...]
    tail: str


class Units(Protocol):
    """What the tokens of a net stand for, in the language that is written."""

    def words(self, tokens: Sequence[int], *, ended: bool) -> Words:
        """Tokens grouped into words as they are printed; `ended`: no token follows."""

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, as it is."""


def group(pieces: Iterable[Piece], *, ended: bool) -> Words:
    """Group pieces into words; punctuation that is no word of its own joins the word before it."""
    words: list[str] = []
    ends: list[int] = []
    word, count = "", 0

    def close() -> None:
        nonlocal word
        if word.strip():
            words.append(word)
            ends.append(count)
            word = ""

    for piece in pieces:
        if piece.begins:
            close()
        word += piece.text
        count += piece.tokens
        if piece.ends:
            close()
    if ended:
        close()
    return Words(tuple(words), tuple(ends), word)


_NO_SPACE_BESIDE = re.compile(f"[{WITHOUT_SPACES['zh']}]")  # Chinese and Japanese letters and marks


def unspaced(word: str) -> str:
    """A word of a language that sets none apart, with the spaces that it has all the same: beside
    words of other scripts ("New York"), and between phrases in scripts such as Thai."""
    text = word.strip()
    before = word[:1].isspace() and text[:1].isalnum() and not _NO_SPACE_BESIDE.match(text[0])
    after = word[-1:].isspace() and text and not _NO_SPACE_BESIDE.match(text[-1])
    return f"{' ' if before else ''}{text}{' ' if after else ''}"


class Grouping(Protocol):
    """`Units.words`, or what is like it."""

    def __call__(self, tokens: Sequence[int], *, ended: bool) -> Words: ...


def words_after(
    grouping: Grouping, said: Sequence[int], tokens: Sequence[int], *, ended: bool
) -> Words:
    """Tokens that follow what was said in whole words.

    The last of those was taken for whole since the text seemed to end there, and may go on: then no
    space comes before what is added to it.
    """
    grouped, last = grouping(tokens, ended=ended), said[-1:]
    if not grouping(last, ended=False).tail.strip():
        return grouped  # what was said cannot go on
    joined = grouping([*last, *tokens], ended=ended)
    if joined.ends[:1] != tuple(end + 1 for end in grouped.ends[:1]):
        return grouped  # another word
    first, *others = (*grouped.words, grouped.tail)
    *words, tail = first.lstrip(), *others
    return replace(grouped, words=tuple(words), tail=tail)


def without_stop(units: Units, tokens: Sequence[int]) -> int:
    """How many tokens there are before the full stop, or another mark, at the end of a text.

    A net ends every window with a stop, though the speaker may go on.
    """
    count = len(tokens)
    while count and _is_mark(units.text(tokens[count - 1 : count]).strip()):
        count -= 1
    return count


def _is_mark(text: str) -> bool:
    return bool(text) and set(text) <= MARKS
