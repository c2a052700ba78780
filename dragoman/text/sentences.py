"""Where sentences end, in words as they are printed one after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

STOPS = (".", "?", "!", "。", "？", "！", "।", "॥", "؟", "۔", "።", "։", "။", "។", "།")
COMMAS = (",", ";", ":", "，", "、", "；", "：", "،")
CLOSING = "\"'”’»“‘«)]」』"  # may stand behind a stop; German closes with “, and »so«
OPENING = "„‚([{¿¡"  # and those of CLOSING
# A stop after these is no end: titles, and what stands before a name or a number.
_ABBREVIATIONS = """
    mr mrs ms messrs dr prof st sr jr vs mt approx cf capt sgt
    nr hr hrn fr bzw bspw ca evtl ggf inkl vgl sog mio mrd tsd dipl
    sra srta dra dña ej ee mme mlle mgr
    Col Gen Gov Lt Pres Rep Rev Sen
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
"""Small ones in any case; the others as they are written: Gen. Lee, but not the next gen."""
_BEFORE_NUMBERS = """
    no nos art fig figs vol p pp ch sec ave tel max min par núm num pág
    abs kap ziff abb str mind s jan feb mar apr jun jul aug sep sept oct okt nov dec dez
"""
BEFORE_NUMBERS = frozenset(_BEFORE_NUMBERS.split())
"""A stop after these is no end where a number follows: No. 10."""
_LETTERS = re.compile(r"(?:[^\W\d_]\.)+")
"""John F. Kennedy, U.N., z.B."""
_HOURS = ("a.m.", "p.m.")
SPELLED = frozenset({"de", "es"})
"""Where a single small letter with a stop is no word: z. B., p. ej.; il y en a."""

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
    return not is_abbreviation(bare, following, language)


def is_abbreviation(word: str, following: str = "", language: str = "") -> bool:
    """Whether a word has a stop because it is shortened, and goes on with what follows it."""
    bare = word.strip().strip(CLOSING + OPENING)
    if not bare.endswith("."):
        return False
    name, small = bare[:-1], bare[:-1].lower()
    if name in ABBREVIATIONS or small in ABBREVIATIONS:
        return True
    if small in BEFORE_NUMBERS and following.strip()[:1].isdigit():
        return True
    if not _LETTERS.fullmatch(bare) or bare.lower() in _HOURS:
        return False
    several = len(bare) > 2 or _LETTERS.fullmatch(following.strip()) is not None
    return several or name.isupper() or language in SPELLED


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
