"""Where sentences end, in words as they are printed one after the other."""

from __future__ import annotations

from collections.abc import Sequence

STOPS = (".", "?", "!", "。", "？", "！", "।", "؟")
CLOSING = "\"'”’»)]」』"  # may stand behind a stop
# A stop after these is no end: titles, and what stands before a name or a number.
ABBREVIATIONS = frozenset({
    *("mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "vs", "nr", "e.g", "i.e", "u.s"),
    *("z.b", "d.h", "bzw", "hr", "fr", "sra", "dra", "mme"),
})  # fmt: skip


def ends_sentence(word: str, following: str = "") -> bool:
    """Whether a sentence ends with a word; `following` is the word after it, if there is one."""
    bare = word.strip().rstrip(CLOSING)
    if not bare.endswith(STOPS):
        return False
    if following.strip()[:1].islower():
        return False
    name = bare[:-1].lower()
    return not (bare.endswith(".") and (name in ABBREVIATIONS or _initial(bare)))


def split_sentences(words: Sequence[str]) -> list[int]:
    """How many words there are up to the end of each sentence; the last may not have ended."""
    ends = [
        count
        for count, word in enumerate(words, 1)
        if ends_sentence(word, words[count] if count < len(words) else "")
    ]
    if words and (not ends or ends[-1] < len(words)):
        ends.append(len(words))
    return ends


def _initial(word: str) -> bool:
    """A single letter, such as the F in John F. Kennedy."""
    return len(word) == 2 and word[0].isupper()
