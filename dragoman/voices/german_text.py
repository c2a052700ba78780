"""German as it is said: numbers, units and signs in words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

_ONES = (
    *("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"),
    *("zehn", "elf", "zwölf"),
)
_TENS = ("zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
_ALPHABET = """
    a be ze de e eff ge ha i jot ka ell emm enn o pe ku er es te u vau we iks ypsilon zett ä ö ü
"""
_LETTERS = dict(zip("abcdefghijklmnopqrstuvwxyzäöü", _ALPHABET.split(), strict=True))
_UNITS = {
    "%": "Prozent", "‰": "Promille", "€": "Euro", "$": "Dollar", "£": "Pfund",
    "°C": "Grad Celsius", "°": "Grad", "km/h": "Kilometer pro Stunde", "km": "Kilometer",
    "m": "Meter", "cm": "Zentimeter", "mm": "Millimeter", "km²": "Quadratkilometer",
    "m²": "Quadratmeter", "m³": "Kubikmeter", "ha": "Hektar", "kg": "Kilogramm", "g": "Gramm",
    "t": "Tonnen", "kW": "Kilowatt", "MW": "Megawatt", "GW": "Gigawatt",
    "kWh": "Kilowattstunden", "MWh": "Megawattstunden", "TWh": "Terawattstunden",
    "GB": "Gigabyte", "MB": "Megabyte",
}  # fmt: skip
_UNIT = rf"(?:{'|'.join(map(re.escape, sorted(_UNITS, key=len, reverse=True)))})(?![\w/²³])"
_MONTHS = (
    *("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September"),
    *("Oktober", "November", "Dezember"),
)
_ARTICLES = (
    r"[Dd]er|[Dd]ie|[Dd]as|[Dd]ieser|[Jj]eder|[Dd]en|[Dd]em|[Dd]es|[AaIi]m|[Vv]om|[Zz]um|"
    r"[Zz]ur|[Bb]is|[Aa]b|[Ss]eit"
)
_FEMININE = ("e", "ung", "heit", "keit", "schaft", "tät", "ion")
_SPOKEN_CAPITALS = frozenset(
    ("AIDS", "ASEAN", "COVID", "EFSA", "ERASMUS", "EURATOM", "FIFA", "FRONTEX", "NAFTA", "NATO")
    + ("OPEC", "PISA", "UNESCO", "UNICEF")
)
"""Read as words, not letter by letter."""
_ABBREVIATIONS = {
    r"\bArt\.(?=\s?\d)": "Artikel",
    r"\bAbs\.(?=\s?\d)": "Absatz",
    r"\bKap\.(?=\s?\d)": "Kapitel",
    r"\bZiff\.(?=\s?\d)": "Ziffer",
    r"\bbspw\.": "beispielsweise",
    r"\binkl\.": "inklusive",
    r"\bsog\.": "sogenannte",
    r"\bvgl\.": "vergleiche",
    r"\bmax\.": "maximal",
    r"\bmind\.": "mindestens",
    r"\bJh\.": "Jahrhundert",
    r"\bi\.\s?d\.\s?R\.": "in der Regel",
    r"\bz\.\s?T\.": "zum Teil",
    r"\bu\.\s?U\.": "unter Umständen",
    r"\bv\.\s?a\.": "vor allem",
    r"\bo\.\s?[äÄ]\.": "oder Ähnliches",
    r"\bm\.\s?E\.": "meines Erachtens",
    r"\bTel\.": "Telefon",
    r"\bz\.\s?B\.": "zum Beispiel",
    r"\bd\.\s?h\.": "das heißt",
    r"\bu\.\s?a\.": "unter anderem",
    r"\bn\.\s?Chr\.": "nach Christus",
    r"\bv\.\s?Chr\.": "vor Christus",
    r"\bbzw\.": "beziehungsweise",
    r"\busw\.": "und so weiter",
    r"\betc\.": "et cetera",
    r"\bevtl\.": "eventuell",
    r"\bggf\.": "gegebenenfalls",
    r"\bca\.": "circa",
    r"\bDr\.": "Doktor",
    r"\bProf\.": "Professor",
    r"\bHr\.": "Herr",
    r"\bFr\.(?=\s[A-ZÄÖÜ])": "Frau",
    r"\bNr\.": "Nummer",
    r"\bSt\.(?=\s[A-ZÄÖÜ])": "Sankt",
    r"\bMio\.": "Millionen",
    r"\bMrd\.": "Milliarden",
    r"\bEUR\b": "€",
    r"\bUSD\b": "$",
}


def spell_out(text: str) -> str:
    """A text without digits and signs, which letter rules cannot read."""
    text = text.translate(_SUBSCRIPTS)
    for pattern, said in _STEPS:
        text = pattern.sub(said, text)
    return text


def in_german_letters(word: str) -> str:
    """A word of small letters with those alone that German has: José, Škoda, Łódź."""
    word = word.translate(_FOREIGN)
    return "".join(c if c in _LETTERS or c == "ß" else _base(c) for c in word)


def _base(letter: str) -> str:
    """A letter without its accents."""
    return unicodedata.normalize("NFD", letter)[0]


def _address(match: re.Match[str]) -> str:
    """www.example.de/info: we we we Punkt example Punkt de e Schrägstrich info."""
    text = re.sub(r"\bwww\b|\b[a-z]{2}\b", lambda m: m[0].upper(), match[1])
    for sign, said in _IN_ADDRESSES.items():
        text = text.replace(sign, f" {said} ")
    return text


def _date(match: re.Match[str]) -> str:
    day, month, year = map(int, match.groups())
    return f"{day}. {_MONTHS[month - 1]} {year}" if 1 <= month <= 12 else match[0]


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


def _one(match: re.Match[str]) -> str:
    """1 Jahr, 1 Stunde; but Artikel 1 Absatz 2."""
    before, noun = match.groups()
    if before is not None and before[0].isupper():
        return match[0]
    return f"{before or ''}{'eine' if noun.endswith(_FEMININE) else 'ein'}"


def _letters(match: re.Match[str]) -> str:
    """EU, G20: a letter at a time, apart from the number beside them."""
    if match[0] in _SPOKEN_CAPITALS:
        return match[0]
    text, (start, end) = match.string, match.span()
    spelled = " ".join(_LETTERS[letter] for letter in match[0].lower())
    return f"{' ' * text[:start][-1:].isdigit()}{spelled}{' ' * text[end:][:1].isdigit()}"


# As near as a German tongue comes.
_FOREIGN = str.maketrans({
    **{"ø": "ö", "œ": "ö", "æ": "ä", "å": "o", "ñ": "nj", "ç": "ss", "š": "sch", "ş": "sch"},
    **{"ś": "sch", "č": "tsch", "ć": "tsch", "ž": "sch", "ż": "sch", "ğ": "", "ı": "i"},
    **{"ł": "l", "đ": "d", "ð": "d", "þ": "t"},
})  # fmt: skip
_IN_ADDRESSES = {"@": "ät", ".": "Punkt", "/": "Schrägstrich", "-": "Bindestrich"}
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
# What each leaves is what the next one reads.
_RULES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        r"\b(?:https?://)?((?:[\w.+-]+@)?[\w.-]+\.(?:com|org|net|info|de|at|ch|eu|uk|io|tv)"
        r"(?:/[\w./-]*\w)?)(?!\w)",
        _address,
    ),
    *_ABBREVIATIONS.items(),
    (r"\b(?:[A-ZÄÖÜ]\.){2,}", lambda m: m[0].replace(".", "")),  # U.S.
    (r"(?<=\d)[ \u00a0\u202f](?=\d{3}(?!\d))(?<!\d{4}.)", ""),  # 500 000
    # The sign of money stands before what is said before it: € 5, € 5 Millionen.
    (r"([€$£])\s?(\d+(?:\.\d{3})*(?:,\d+)?(?:\s(?:Millionen|Milliarden)\b)?)", r"\2 \1"),
    (r"(?<=Millionen|illiarden)\s?([€$£])", lambda m: f" {_UNITS[m[1]]}"),
    (r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b", _date),
    (r"\b(\d{1,2})[:.](\d\d) Uhr\b", _clock),
    (r"\b([01]?\d|2[0-3]):([0-5]\d)\b(?![:,.]\d)", _clock),
    (r"(?<=\d)\s?[–-]\s?(?=\d)", " bis "),
    (r"(?<![^\s(])[-−–](?=\d)", "minus "),
    (r"(?<![^\s(])\+(?=\d)", "plus "),
    (rf"(?<=\d)\s?({_UNIT})", lambda m: f" {_UNITS[m[1]]}"),
    (r"(?<=\d)\s?%(?=ig)", "prozent"),
    (r"§\s?", "Paragraf "),
    (r"\s?&\s?", " und "),
    (r"½", " einhalb"),
    # A number with a point: what stands before it or after it makes it the first, the second …
    (
        rf"(?:\b({_ARTICLES})\s)?\b(\d{{1,3}})\.(?=\s(?:({'|'.join(_MONTHS)}|Jänner)\b|"
        r"[a-zäöü]|[A-ZÄÖÜ]\w))",
        _ordinal,
    ),
    (r"(\b[^\W\d]+\s)?(?<![\d.,])\b1(?=\s([A-ZÄÖÜ][a-zäöüß]+))", _one),
    (r"\b[A-ZÄÖÜ]{2,}\b|\b[A-ZÄÖÜ]\b(?!\.)|[A-ZÄÖÜ]+(?=\d)|(?<=\d)[A-ZÄÖÜ]+\b", _letters),
    (r"(?<=\d),(\d+)", lambda m: " Komma " + " ".join(_ONES[int(d)] for d in m[1])),
    (r"(?<=\d)\.(?=\d{1,2}(?!\d))", " Punkt "),
    (
        r"\d{1,3}(?:\.\d{3})+(?!\d)|\d+",
        lambda m: number_in_words(int(m[0].replace(".", ""))),
    ),
    (r"(?<=\w)/(?=\w)", " "),
    (r"  +", " "),
)
_STEPS = tuple((re.compile(pattern), said) for pattern, said in _RULES)


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
