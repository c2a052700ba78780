"""Where sentences end, in words as they are printed one after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

STOPS = (".", "?", "!", "。", "？", "！", "।", "॥", "؟", "۔", "።", "։", "။", "។", "།")
COMMAS = (",", ";", ":", "，", "、", "；", "：", "،")
CLOSING = "\"'”’»)]」』"  # may stand behind a stop
# A stop after these is no end: titles, and what stands before a name or a number.
ABBREVIATIONS = frozenset({
    *("mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "vs", "nr", "e.g", "i.e", "u.s"),
    *("z.b", "d.h", "bzw", "hr", "fr", "sra", "dra", "mme"),
})  # fmt: skip

# Where the stop after a number makes it an ordinal: am 8. September, 8. september, 8. září.
ORDINALS = frozenset({
    *("de", "lb", "da", "no", "nn", "is", "fo", "fi", "et", "lv"),
    *("cs", "sk", "sl", "hr", "sr", "bs", "pl", "hu", "tr", "az"),
})  # fmt: skip
_ORDINAL = re.compile(r"\d{1,2}\.")


def ends_sentence(word: str, following: str = "", language: str = "") -> bool:
    """Whether a sentence ends with a word; `following` is the word after it, if there is one."""
    bare = word.strip().rstrip(CLOSING)
    if not bare.endswith(STOPS):
        return False
    if following.strip()[:1].islower():
        return False
    if is_ordinal(bare, language):
        return False
    name = bare[:-1].lower()
    return not (bare.endswith(".") and (name in ABBREVIATIONS or _initial(bare)))


_FULL_STOPS = {
    **dict.fromkeys(("zh", "yue", "ja"), "。"),
    **dict.fromkeys(("hi", "ne", "sa", "bn", "as", "or", "pa"), "।"),
    **dict.fromkeys(("bo", "dz"), "།"),
    **dict.fromkeys(("am", "ti"), "።"),
    **{"ur": "۔", "hy": "։", "km": "។", "my": "။"},
    **dict.fromkeys(("th", "lo"), ""),  # there a space ends a sentence
}


def full_stop(language: str) -> str:
    return _FULL_STOPS.get(language, ".")


def with_stop(words: Sequence[str], language: str) -> list[str]:
    """Words that have not ended a sentence, with a full stop in place of a comma or nothing."""
    return [*words[:-1], without_comma(words[-1]) + full_stop(language)]


def without_comma(text: str) -> str:
    """A text that breaks off or ends here, without what told that it would go on."""
    return text.rstrip("".join(COMMAS))


def is_ordinal(word: str, language: str) -> bool:
    """Whether a word is a number that goes on, as the day of a month does: 8."""
    return language in ORDINALS and _ORDINAL.fullmatch(word) is not None


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
