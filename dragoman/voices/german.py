"""How the Dittli voice reads German: by letter rules that come with it as a table.

Its network was trained on what these rules make of a text, right or wrong, and learnt the true
sounds of what is frequent from the letters; what it says wrong all the same is spelt otherwise
(`german_words.py`). What depends on the letters around is written here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from dragoman.voices.german_text import in_german_letters, spell_out
from dragoman.voices.german_words import as_it_sounds


class GermanReader:
    """Text to the symbols of the network."""

    def __init__(self, rules: dict[str, Any]) -> None:
        """`rules` is the table: exceptions, letter rules, prefixes, vowels, abbreviations."""
        self._rules: list[tuple[str, Any]] = [(letters, made) for letters, made in rules["rules"]]
        self._exceptions: dict[str, list[str]] = rules["exceptions"]
        self._abbreviations = [(re.compile(p), words) for p, words in rules["abbreviations"]]
        self._prefixes = tuple(rules["prefixes"])
        self._hard_v = tuple(rules["loanword_v_fragments"])
        self._vowels, self._back_vowels = rules["all_vowels"], rules["back_vowels"]
        self._by_context: dict[str, Callable[[str, int], list[str]]] = {
            "ch": self._ch,
            "chs": self._chs,
            "st": lambda word, at: ["ʃ" if self._begins_stem(word, at) else "s", "t"],
            "sp": lambda word, at: ["ʃ" if self._begins_stem(word, at) else "s", "p"],
            "r": self._r,
            "s": self._s,
            "v": lambda word, at: ["v" if any(v in word for v in self._hard_v) else "f"],
        }

    def read(self, text: str) -> list[str]:
        """The phonemes and punctuation marks of a text, one after the other."""
        symbols: list[str] = []
        text = unicodedata.normalize("NFC", text)
        for token in re.findall(r"[\wäöüß'’-]+|[^\w\s]", self.spell_out(text).lower()):
            symbols += self._read_word(token) if token[0].isalnum() else [token]
        return symbols

    def spell_out(self, text: str) -> str:
        """A text in words alone, which letter rules can read; once or twice is the same."""
        for abbreviation, words in self._abbreviations:
            text = abbreviation.sub(words, text)
        return spell_out(text)

    def _read_word(self, word: str) -> list[str]:
        if word in self._exceptions:
            return list(self._exceptions[word])
        word = in_german_letters(as_it_sounds(word))
        sounds: list[str] = []
        at = 0
        while at < len(word):
            unknown: tuple[str, Any] = (word[at], [])
            rules = (rule for rule in self._rules if word.startswith(rule[0], at))
            letters, made = next(rules, unknown)
            sounds += self._by_context[made["callback"]](word, at) if "callback" in made else made
            at += len(letters)
        return sounds

    def _begins_stem(self, word: str, at: int) -> bool:
        return at == 0 or any(word.startswith(p) and len(p) == at for p in self._prefixes)

    def _ch(self, word: str, at: int) -> list[str]:
        if at == 0:
            return ["k"]
        return ["x" if word[at - 1] in self._back_vowels else "ç"]

    def _chs(self, word: str, at: int) -> list[str]:
        whole_stem = word[at + 3 : at + 4] in ("", "t")
        return ["k", "s"] if whole_stem else [*self._ch(word, at), "s"]

    def _r(self, word: str, at: int) -> list[str]:
        after_vowel = at > 0 and word[at - 1] in self._vowels
        return ["ɐ" if after_vowel and at == len(word) - 1 else "ʁ"]

    def _s(self, word: str, at: int) -> list[str]:
        before = at == 0 or word[at - 1] in self._vowels
        after = word[at + 1 : at + 2]
        return ["z" if before and after and after in self._vowels else "s"]
