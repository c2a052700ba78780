"""A scripted model whose sentences end late: a stop is certain only when the next word is heard."""

from __future__ import annotations

from dataclasses import replace

from tests.scripted import ScriptedModel

WORDS = ("It", "rains", ".", "We", "stay", "at", "home", ",", "dry", "and", "warm", ".")


class LateStops(ScriptedModel):
    """Marks are pieces of their own, without a space before them."""

    def _continue(self, stream, ask):
        draft = super()._continue(stream, ask)
        marks = (word.strip() if not word.strip().isalnum() else word for word in draft.words)
        return replace(draft, words=tuple(marks))


def model() -> LateStops:
    """A piece every 400 ms; a mark is heard with the word after it."""
    times = [400.0 * (i + 1) + (400.0 if word in ".," else 0.0) for i, word in enumerate(WORDS)]
    return LateStops(list(zip(WORDS, times, strict=True)))
