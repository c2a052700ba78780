"""How text models name their languages: in their vocabularies, and in names of their own."""

from __future__ import annotations

import re

from dragoman.errors import DragomanError
from dragoman.text.languages import find_language

NLLB = re.compile(r"([a-z]{3}_[A-Z][a-z]{3})")  # eng_Latn
M2M = re.compile(r"__([a-z]{2,3})__")  # __en__
# OPUS-MT, of a single pair; "tc" is no language, nor is "big" behind it.
PAIR = re.compile(r"opus-(?:mt-)?(?:tc-(?:big|base)-)?(?!tc-)([a-z]{2,3})-(?!tc-)([a-z]{2,3})\b")


def our_code(code: str) -> str:
    """Our code of a language, or the one that the model has where we know none."""
    try:
        return find_language(code).code
    except DragomanError:
        return code
