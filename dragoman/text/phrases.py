"""Where a text may be broken so that it reads well: after a sentence, a clause, before a phrase."""

from __future__ import annotations

import re
import unicodedata

from dragoman.text.sentences import CLOSING, ends_sentence, is_abbreviation, is_ordinal

SENTENCE, CLAUSE, JOINED, PHRASE, WORD, INSIDE = 0.0, 0.25, 0.4, 0.6, 1.0, 2.5
"""What a break costs: after a sentence, after a comma, before a conjunction, before what begins a
phrase, between any two words, inside what belongs together (an article and its noun, a title and
its name, a preposition and what it leads)."""

CLAUSE_END = re.compile(rf"[,;:…—–、，；：،؛][{re.escape(CLOSING)}]*$")

_LEADING_SIGN = re.compile(r"[«“„(\[{¿¡]+|[§€$£¥#№]")
_DIGITS, _THREE_DIGITS = re.compile(r"\d{1,3}"), re.compile(r"\d{3}(?!\d)")

# One list for all: words that mean something else in another language are left out.
_ARTICLES = """
    a an the this that these those my your his her its our their no every each
    some any both several many
    der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines
    mein meine meinen meinem meiner meines sein seine seinen seinem seiner seines
    ihr ihre ihren ihrem ihrer ihres unser unsere unseren unserem unserer unseres
    dieser diese dieses diesen diesem jeder jede jedes jeden jedem
    alle allen aller einige einigen einiger mehrere mehreren mehrerer viele vielen vieler
    beide beiden deren dessen
    le la les un une des du au aux ce cet cette ces mon ma mes ta tes son sa ses notre nos leur
    leurs chaque plusieurs quelques
    el los las una unos unas lo al del este esta estos estas ese esa esos esas mi mis su sus
    nuestro nuestra nuestros nuestras cada varios varias
    il gli i uno dei delle degli della dello dal nel nella o os as um uma uns umas no na nos nas do
    da dos das ao het een de den det et en
"""
_PREPOSITIONS = """
    of in on at by for with from to into onto over under about after before between through during
    without against within upon since until than as towards among like
    von in im an am auf aus bei beim mit nach seit zu zum zur für durch gegen ohne um über unter vor
    zwischen während wegen trotz bis als
    à dans par pour sur avec sans sous entre chez vers depuis pendant
    con por para sin sobre entre desde hasta hacia según
    di da su per tra fra com em sem até voor naar uit
"""
_TITLES = "mr mrs ms herr herrn frau señor señora señoría monsieur madame"
_CONJUNCTIONS = """
    and or but nor so because if when while where which who whom whose although though unless
    whether
    und oder aber denn sondern weil dass daß ob wenn während obwohl damit sowie
    et ou mais donc que qui dont où parce quand lorsque si
    y e o u pero sino que porque cuando donde aunque quien
    ma perché che quando dove mas porque quem en maar omdat dat
"""
_ARTICLE = frozenset(_ARTICLES.split())
_PREPOSITION = frozenset(_PREPOSITIONS.split())
_CONJUNCTION = frozenset(_CONJUNCTIONS.split())
# Before "der" as "which" there is a comma; where there is none, it is an article.
_BEGINS = _PREPOSITION | frozenset(("der", "die", "das"))
_LEADS_ON = _ARTICLE | _PREPOSITION | _CONJUNCTION | frozenset(_TITLES.split())


def break_cost(before: str, after: str, language: str = "") -> float:
    """What it costs to break a text between two words of it, from `SENTENCE` to `INSIDE`."""
    if ends_sentence(before, after, language):
        return SENTENCE
    if CLAUSE_END.search(before):
        return CLAUSE
    if _kana_then_kanji(before, after):
        return PHRASE
    counts = before[:1].isdigit() and before[-1:].isdigit()  # 15 people; not 15%
    counts = (counts and not after[:1].isdigit()) or is_ordinal(_bare(before), language)
    if counts or _bare(before) in _LEADS_ON or _LEADING_SIGN.fullmatch(before):
        return INSIDE
    if is_abbreviation(before, after, language):
        return INSIDE
    if _DIGITS.fullmatch(before) and _THREE_DIGITS.match(after):  # 10 000
        return INSIDE
    second = _bare(after)
    if second in _CONJUNCTION:
        return JOINED
    return PHRASE if second in _BEGINS else WORD


def _bare(word: str) -> str:
    return word.strip("\"'”’»)]“‘«([¿¡").lower()


def _kana_then_kanji(before: str, after: str) -> bool:
    """In Japanese a phrase ends in hiragana, as a rule, and the next begins with something else."""
    return _script(before[-1:]) == "HIRAGANA" and _script(after[:1]) in ("CJK", "KATAKANA")


def _script(character: str) -> str:
    return unicodedata.name(character, "").split(" ")[0] if character else ""
