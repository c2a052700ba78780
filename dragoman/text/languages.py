"""Languages: codes, names, and which of them write without spaces between words.

The table holds every language that Whisper hears, and more that one may want to translate into.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from dragoman.errors import DragomanError

Unit = Literal["word", "char"]


@dataclass(frozen=True, slots=True)
class Language:
    """A language: `code` is what is written in corpora, file names and options."""

    code: str
    name: str
    aliases: tuple[str, ...] = ()
    """Other codes (ISO 639-2 and 639-3) and names."""

    @property
    def spaced(self) -> bool:
        """Whether words are written with spaces between them."""
        return self.code not in WITHOUT_SPACES

    @property
    def unit(self) -> Unit:
        """What latency and quality are counted in, unless told otherwise."""
        return "word" if self.spaced else "char"


_TIBETAN = r"\u0F00-\u0FFF"
_CHINESE_AND_JAPANESE = (
    r"\u2E80-\u312F\u31A0-\u9FFF\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFF9F\uFFE0-\uFFEF"
    r"\U0001B000-\U0001B16F\U00020000-\U0003FFFF"
)

WITHOUT_SPACES: dict[str, str] = {
    "bo": _TIBETAN,
    "dz": _TIBETAN,
    "ja": _CHINESE_AND_JAPANESE,
    "km": r"\u1780-\u17FF\u19E0-\u19FF",
    "lo": r"\u0E80-\u0EFF",
    "my": r"\u1000-\u109F\uA9E0-\uA9FF\uAA60-\uAA7F",
    "th": r"\u0E00-\u0E7F",
    "yue": _CHINESE_AND_JAPANESE,
    "zh": _CHINESE_AND_JAPANESE,
}
"""The languages written without spaces between words, and the letters and marks of their scripts.

The one definition: units of latency, tokenizers of BLEU, words of drafts and spoken text follow.
"""

UNSPACED = re.compile(f"[{''.join(sorted(set(WITHOUT_SPACES.values())))}]")
"""A character of a script that has no spaces between words."""

# code, other codes, English name, other names
_WHISPER = """
af afr Afrikaans
am amh Amharic
ar ara,arb Arabic
as asm Assamese
az aze Azerbaijani
ba bak Bashkir
be bel Belarusian
bg bul Bulgarian
bn ben Bengali,Bangla
bo bod,tib Tibetan
br bre Breton
bs bos Bosnian
ca cat Catalan,Valencian
cs ces,cze Czech
cy cym,wel Welsh
da dan Danish
de deu,ger German,Deutsch
el ell,gre Greek
en eng English
es spa Spanish,Castilian,Español
et est Estonian
eu eus,baq Basque
fa fas,per,pes Persian,Farsi
fi fin Finnish
fo fao Faroese
fr fra,fre French,Français
gl glg Galician
gu guj Gujarati
ha hau Hausa
haw - Hawaiian
he heb,iw Hebrew
hi hin Hindi
hr hrv Croatian
ht hat Haitian Creole,Haitian
hu hun Hungarian
hy hye,arm Armenian
id ind Indonesian
is isl,ice Icelandic
it ita Italian,Italiano
ja jpn Japanese
jw jv,jav Javanese
ka kat,geo Georgian
kk kaz Kazakh
km khm Khmer
kn kan Kannada
ko kor Korean
la lat Latin
lb ltz Luxembourgish,Letzeburgesch
ln lin Lingala
lo lao Lao
lt lit Lithuanian
lv lav Latvian
mg mlg Malagasy
mi mri,mao Maori
mk mkd,mac Macedonian
ml mal Malayalam
mn mon Mongolian
mr mar Marathi
ms msa,may Malay
mt mlt Maltese
my mya,bur Burmese,Myanmar
ne nep Nepali
nl nld,dut Dutch,Flemish
nn nno Nynorsk,Norwegian Nynorsk
no nor,nb,nob Norwegian,Bokmål,Norwegian Bokmål
oc oci Occitan
pa pan Punjabi,Panjabi
pl pol Polish
ps pus Pashto,Pushto
pt por Portuguese,Português
ro ron,rum Romanian,Moldovan,Moldavian
ru rus Russian
sa san Sanskrit
sd snd Sindhi
si sin Sinhala,Sinhalese
sk slk,slo Slovak
sl slv Slovenian,Slovene
sn sna Shona
so som Somali
sq sqi,alb Albanian
sr srp Serbian
su sun Sundanese
sv swe Swedish
sw swa Swahili
ta tam Tamil
te tel Telugu
tg tgk Tajik
th tha Thai
tk tuk Turkmen
tl tgl,fil Tagalog,Filipino
tr tur Turkish
tt tat Tatar
uk ukr Ukrainian
ur urd Urdu
uz uzb Uzbek
vi vie Vietnamese
yi yid Yiddish
yo yor Yoruba
yue - Cantonese
zh zho,chi,cmn Chinese,Mandarin
"""

_MORE = """
ak aka Akan,Twi
dz dzo Dzongkha
eo epo Esperanto
fy fry Western Frisian,Frisian
ga gle Irish
gd gla Scottish Gaelic
ig ibo Igbo
ku kur Kurdish
ky kir Kyrgyz
lg lug Ganda,Luganda
or ori,ory Odia,Oriya
rw kin Kinyarwanda
sc srd Sardinian
st sot Sesotho
ti tir Tigrinya
tn tsn Tswana
ug uig Uyghur
wo wol Wolof
xh xho Xhosa
zu zul Zulu
"""


def _read(table: str) -> dict[str, Language]:
    languages = {}
    for row in table.split("\n"):
        if row:
            code, codes, names = row.split(" ", 2)
            name, *others = names.split(",")
            aliases = ([] if codes == "-" else codes.split(",")) + others
            languages[code] = Language(code, name, tuple(aliases))
    return languages


HEARD: dict[str, Language] = _read(_WHISPER)
"""The languages that Whisper hears, by its codes."""

LANGUAGES: dict[str, Language] = dict(sorted({**HEARD, **_read(_MORE)}.items()))
"""All languages, by code."""

_BY_NAME: dict[str, Language] = {
    key.casefold(): language
    for language in LANGUAGES.values()
    for key in (language.code, language.name, *language.aliases)
}


def find_language(text: str) -> Language:
    """The language of a code or a name: 'de', 'deu', 'ger', 'German', 'de-AT' or 'de_DE'."""
    if language := look_up(text):
        return language
    near = get_close_matches(text.strip().casefold(), _BY_NAME, n=1)
    what = f"'{text}' is not a language that is known here."
    if not near:
        raise DragomanError(what, advice="'dragoman languages' lists them.")
    meant = _BY_NAME[near[0]]
    raise DragomanError(f"{what} Did you mean '{meant.name}' ({meant.code})?")


def look_up(text: str) -> Language | None:
    """The same, or None."""
    wanted = text.strip().casefold()
    return _BY_NAME.get(wanted) or _BY_NAME.get(wanted.replace("_", "-").split("-")[0])


def written_without_spaces(code: str) -> bool:
    """Whether a language has no spaces between words; one that is not known here has them."""
    language = look_up(code)
    return language is not None and not language.spaced
