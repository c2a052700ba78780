"""Text as it is spoken: without case and punctuation."""

from __future__ import annotations

import re

_NOT_SPOKEN = re.compile(r"[^\w\s'’-]|(?<!\w)['’-]|['’-](?!\w)")


def plain(text: str) -> str:
    """Lower case, no punctuation but inside words: `Don’t stop, OK?` -> `don’t stop ok`."""
    return " ".join(_NOT_SPOKEN.sub(" ", text.lower()).split())
