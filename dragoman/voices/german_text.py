"""German as it is said: numbers, units and signs in words."""

from __future__ import annotations

import re

_ONES = (
    *("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"),
    *("zehn", "elf", "zwölf"),
)
_TENS = ("zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
_ALPHABET = """
    a be ze de e ef ge ha i jot ka el em en o pe ku er es te u vau we iks ypsilon zet ä ö ü
"""
_LETTERS = dict(zip("abcdefghijklmnopqrstuvwxyzäöü", _ALPHABET.split(), strict=True))
_UNITS = {
    "%": "Prozent", "‰": "Promille", "€": "Euro", "$": "Dollar", "£": "Pfund",
    "°C": "Grad Celsius", "°": "Grad", "km/h": "Kilometer pro Stunde", "km": "Kilometer",
    "m": "Meter", "cm": "Zentimeter", "mm": "Millimeter", "kg": "Kilogramm",
    "kWh": "Kilowattstunden", "MW": "Megawatt", "GB": "Gigabyte", "MB": "Megabyte",
}  # fmt: skip
_UNIT = re.compile(
    rf"(?<=\d)\s?({'|'.join(map(re.escape, sorted(_UNITS, key=len, reverse=True)))})(?![\w/])"
)
_MONEY_FIRST = re.compile(r"([€$£])\s?(\d+(?:\.\d{3})*(?:,\d+)?)")
_SIGNS = {"§": "Paragraf ", "&": " und ", "½": " einhalb"}
_CLOCK = re.compile(r"\b(\d{1,2})[:.](\d\d)(?= Uhr\b) Uhr")
_RANGE = re.compile(r"(?<=\d)\s?[–-]\s?(?=\d)")
_MONTHS = (
    "Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
)
# A number with a point: what stands before it or after it makes it the first, the second …
_ORDINAL = re.compile(
    rf"(?:\b([Dd]er|[Dd]ie|[Dd]as|[Dd]ieser|[Jj]eder|[Dd]en|[Dd]em|[Dd]es|[AaIi]m|[Vv]om|[Zz]um|"
    rf"[Zz]ur|[Bb]is|[Aa]b|[Ss]eit)\s)?\b(\d{{1,3}})\.(?=\s(?:({_MONTHS})\b|[a-zäöü]|[A-ZÄÖÜ]\w))"
)
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{3})+(?!\d)|\d+")
_DECIMALS = re.compile(r"(?<=\d),(\d+)")
_CAPITALS = re.compile(r"\b[A-ZÄÖÜ]{2,}\b")


def spell_out(text: str) -> str:
    """A text without digits and signs, which letter rules cannot read."""
    text = _MONEY_FIRST.sub(r"\2 \1", text)
    text = _CLOCK.sub(_clock, text)
    text = _RANGE.sub(" bis ", text)
    text = _UNIT.sub(lambda m: f" {_UNITS[m[1]]}", text)
    for sign, words in _SIGNS.items():
        text = text.replace(sign, words)
    text = _ORDINAL.sub(_ordinal, text)
    text = _CAPITALS.sub(lambda m: " ".join(_LETTERS[c] for c in m[0].lower()), text)
    text = _DECIMALS.sub(lambda m: " Komma " + " ".join(_ONES[int(d)] for d in m[1]), text)
    text = _NUMBER.sub(lambda m: number_in_words(int(m[0].replace(".", ""))), text)
    return re.sub(r"  +", " ", text)


def _clock(match: re.Match[str]) -> str:
    hour, minute = int(match[1]), int(match[2])
    hour_in_words = "ein" if hour == 1 else number_in_words(hour)
    return f"{hour_in_words} Uhr {number_in_words(minute) if minute else ''}".rstrip()


def _ordinal(match: re.Match[str]) -> str:
    before, number, month = match.groups()
    if before is None and month is None:
        return match[0]  # the end of a sentence, for all that can be told
    weak = before is not None and before.lower() in ("der", "die", "das", "dieser", "jeder")
    bare = before is None  # 3. Mai: dritter Mai
    ending = "er" if bare else "e" if weak else "en"
    return f"{before} " * (not bare) + ordinal_in_words(int(number)) + ending


def ordinal_in_words(number: int) -> str:
    """The stem of an ordinal, without its ending: erst, zweit, zwanzigst."""
    rest = number % 100
    if rest in _ORDINALS:
        hundreds = number_in_words(number - rest) if number > rest else ""
        return hundreds + _ORDINALS[rest]
    return number_in_words(number) + ("t" if 0 < rest < 20 else "st")


_ORDINALS = {1: "erst", 3: "dritt", 7: "siebt", 8: "acht"}


def number_in_words(number: int) -> str:
    """A number as it is said: 1999 is neunzehnhundertneunundneunzig, as years are."""
    if number < 13:
        return _ONES[number]
    if number < 20:
        stem = {16: "sech", 17: "sieb"}.get(number, _ONES[number - 10])
        return f"{stem}zehn"
    if number < 100:
        tens, ones = divmod(number, 10)
        return f"{_before_more(ones)}und{_TENS[tens - 2]}" if ones else _TENS[tens - 2]
    if number < 1000 or 1100 <= number < 2000:
        return _in_units(number, 100, "hundert")
    if number < 1_000_000:
        return _in_units(number, 1000, "tausend")
    for unit, name in ((10**12, "Billion"), (10**9, "Milliarde"), (10**6, "Million")):
        if number >= unit:
            count, rest = divmod(number, unit)
            several = f"{number_in_words(count)} {name.rstrip('e')}en"
            head = f"eine {name}" if count == 1 else several
            return f"{head} {number_in_words(rest)}" if rest else head
    raise AssertionError("all numbers are below or above a million")


def _in_units(number: int, unit: int, name: str) -> str:
    count, rest = divmod(number, unit)
    return f"{_before_more(count)}{name}{number_in_words(rest) if rest else ''}"


def _before_more(number: int) -> str:
    """`ein`, not `eins`, within a longer number."""
    return "ein" if number == 1 else number_in_words(number)
