"""Text to words and back, in languages with and without spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from dragoman.text.languages import UNSPACED, find_language
from dragoman.text.plain import plain

_CLOSING = frozenset(",.;:!?%)]}»”’…")
_OPENING = frozenset("([{«“¿¡")
_APART = {"fr": frozenset("!?;:%«»"), "de": frozenset("%")}
"""Marks that a language writes with a space between them and their word: 58 %."""
_FIRST = re.compile(r"\s*\S+")


class _Word(Protocol):
    @property
    def text(self) -> str: ...


Word = TypeVar("Word", bound=_Word)


def split_words(text: str, language: str) -> list[str]:
    """The words of a text; its characters where words are not set apart.

    A character is what the eye takes for one: a letter with its marks. Foreign words and numbers
    among such characters stay whole.
    """
    return text.split() if find_language(language).spaced else _characters(text)


def join_words(words: Iterable[str], language: str) -> str:
    """A text of words, spaced as the language is; punctuation that stands alone finds its word."""
    found = find_language(language)
    parts: list[str] = []
    previous = ""
    for word in filter(None, words):
        if found.spaced:
            apart = not _belong_together(previous, word, found.code)
        else:
            apart = not (UNSPACED.match(previous) or UNSPACED.match(word))
        parts += [" ", word] if previous and apart else [word]
        previous = word
    return "".join(parts)


def whole_words(words: Sequence[Word]) -> list[list[Word]]:
    """Words that were said one by one, with their spacing: each with the marks that came later."""
    whole: list[list[Word]] = []
    for word in words:
        if whole and goes_on(word.text):
            whole[-1].append(word)
        else:
            whole.append([word])
    return whole


def goes_on(text: str) -> bool:
    """Whether a text, with the space before it, belongs to the word before it: a mark on its own,
    or what no space sets apart, in a script that has spaces."""
    tight = not text[:1].isspace() and not UNSPACED.match(text)
    return tight or not plain(text)


def is_whole(word: str, draft: str) -> bool:
    """Whether nothing will be added to a word, as far as the draft of what follows it tells."""
    if following := _FIRST.match(draft):
        return not goes_on(following[0])
    last = word.rstrip()[-1:]
    return bool(UNSPACED.match(last)) or not plain(last)


def _characters(text: str) -> list[str]:
    units: list[str] = []
    after_space = True
    for char in text:
        if char.isspace():
            after_space = True
            continue
        previous = units[-1] if units else ""
        foreign = not UNSPACED.match(char)
        goes_on = foreign and not after_space and not UNSPACED.match(previous)
        if previous and (goes_on or _is_mark(char)):
            units[-1] += char
        else:
            units.append(char)
        after_space = False
    return units


def _is_mark(char: str) -> bool:
    """Whether it belongs to the letter before it: an accent, a tone, a vowel sign, a joiner."""
    return unicodedata.category(char) in ("Mn", "Mc", "Me", "Cf")


def _belong_together(previous: str, word: str, code: str) -> bool:
    """Whether no space comes between two words."""
    return closes(word, code) or set(previous) <= _OPENING - _APART.get(code, frozenset())


def closes(word: str, code: str = "") -> bool:
    """Whether a word is punctuation that stands right behind the word before it."""
    return set(word) <= _CLOSING - _APART.get(code, frozenset())
