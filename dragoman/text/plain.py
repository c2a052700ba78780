"""Text as it is spoken: without punctuation and, mostly, case."""

from __future__ import annotations

import re

_NOT_SPOKEN = re.compile(r"[^\w\s'’-]|(?<!\w)['’-]|['’-](?!\w)")


def plain(text: str) -> str:
    """Lower case, no punctuation but inside words: `Don’t stop, OK?` -> `don’t stop ok`."""
    return unmarked(text.lower())


def unmarked(text: str) -> str:
    """The same in the letters that it is written in: `Don’t stop, OK?` -> `Don’t stop OK`."""
    return " ".join(_NOT_SPOKEN.sub(" ", text).split())
