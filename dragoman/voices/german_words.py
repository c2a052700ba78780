"""German words that letter rules read wrong, spelt so that they read them right.

Letter rules know no seams: the "ng" of "angesichts" and the "st" of "Todesstrafe" are two sounds of
two parts of a word. Nor do they know what French and English words sound like.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# A seam is a hyphen, which makes no sound of its own but keeps letters apart.
_SEAMS = (
    (r"^((?:un)?(?:an|ein|un|hin|heran|voran))g(?=[aäeilöru])", r"\1-g"),
    (r"(?<=\w)st(?=aat|and|ruktur|rateg|euer|ell|ärk|raf|raß|ück|ufen?\b|unde)", "-scht"),
    (r"(?<=\w)sp(?=rach|räch|rech|r[uü]ch|r[uü]ng|iel|itz)", "-schp"),
)
_ONE_SOUND = re.compile(
    r"ungar|angel(?:n|a|ika|s\w*|punkt\w*)?$|angl(?:o|ika|ist|iz)|hinge(?:n|t|st)?$"
)
"""In these, "ng" is one."""
_FOREIGN = {
    **{"balance": "balangse", "branche": "brangsche", "budget": "büdschee", "chance": "schangse"},
    **{"coach": "kohtsch", "detaillier": "detajier", "detail": "detai"},
    **{"engagement": "anggaschemang", "engagier": "anggaschier", "garage": "garahsche"},
    **{"image": "immidsch", "ingenieur": "inscheniör", "interview": "interwju"},
    **{"journal": "schurnal", "jury": "schüri", "loyal": "loajahl"},
    **{"management": "männedschment", "manage": "männedsche", "milieu": "miljö"},
    **{"niveau": "niwo", "nuance": "nüangse", "orange": "orangsche", "passagier": "passaschier"},
    **{"reportage": "reportahsche", "ressource": "ressurße", "restaurant": "restorang"},
    **{"sabotage": "sabotahsche", "service": "sörwis", "teams": "tiems", "toilette": "toalette"},
    **{"training": "träning", "trainer": "träner", "tourismus": "turismus", "tourist": "turist"},
}
"""By what they begin with, also within a longer word; none of it is a part of a German one."""
_SOUNDS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    *((re.compile(pattern), said) for pattern, said in _SEAMS),
    (re.compile(r"\bchef"), "schef"),
    (re.compile(r"\bdesign(?!ier)"), "disain"),
    (re.compile(r"\bjob(?=s?\b)"), "dschob"),
    (re.compile("|".join(_FOREIGN)), lambda found: _FOREIGN[found[0]]),
)


def as_it_sounds(word: str) -> str:
    """A word of small letters, spelt as letter rules have to find it."""
    seams = _SOUNDS[1:] if _ONE_SOUND.match(word) else _SOUNDS
    for pattern, said in seams:
        word = pattern.sub(said, word)
    return word
