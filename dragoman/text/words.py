"""Text to words and back, in languages with and without spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from dragoman.text.languages import find_language

# Scripts without spaces: Thai, Lao, Tibetan, Burmese, Khmer, and Chinese, Japanese with their
# punctuation and full-width forms.
_UNSPACED = re.compile(
    r"[\u0E00-\u0FFF\u1000-\u109F\u1780-\u17FF\u19E0-\u19FF\uA9E0-\uA9FF\uAA60-\uAA7F"
    r"\u2E80-\u312F\u31A0-\u9FFF\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFFEF"
    r"\U0001B000-\U0001B16F\U00020000-\U0003FFFF]"
)
_JOINER = "\u200d"

_CLOSING = frozenset(",.;:!?%)]}»”’…")
_OPENING = frozenset("([{«“¿¡")
_APART_IN_FRENCH = frozenset("!?;:%«»")


def split_words(text: str, language: str) -> list[str]:
    """The words of a text; its characters where words are not set apart.

    A character is what the eye takes for one: a letter with its marks. Foreign words and numbers
    among such characters stay whole.
    """
    return text.split() if find_language(language).spaced else _characters(text)


def join_words(words: Iterable[str], language: str) -> str:
    """A text of words, spaced as the language is; punctuation that stands alone finds its word."""
    found = find_language(language)
    text = ""
    for word in words:
        if found.spaced:
            apart = not _belongs_together(text, word, found.code)
        else:
            apart = not (_UNSPACED.match(text[-1:]) or _UNSPACED.match(word))
        text += f" {word}" if text and apart else word
    return text


def _characters(text: str) -> list[str]:
    units: list[str] = []
    after_space = True
    for char in text:
        if char.isspace():
            after_space = True
            continue
        previous = units[-1] if units else ""
        foreign = not _UNSPACED.match(char)
        goes_on = foreign and not after_space and not _UNSPACED.match(previous)
        if previous and (goes_on or _is_mark(char)):
            units[-1] += char
        else:
            units.append(char)
        after_space = False
    return units


def _is_mark(char: str) -> bool:
    """Whether it sits on the letter before it: an accent, a tone, a vowel sign."""
    return char == _JOINER or unicodedata.category(char).startswith("M")


def _belongs_together(text: str, word: str, code: str) -> bool:
    """Whether no space comes between a text and the word after it."""
    apart = _APART_IN_FRENCH if code == "fr" else frozenset()
    last = text.rpartition(" ")[2]
    closes = bool(word) and set(word) <= _CLOSING - apart
    opens = bool(last) and set(last) <= _OPENING - apart
    return closes or opens
