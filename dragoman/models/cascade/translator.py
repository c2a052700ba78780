"""What the second half of a cascade is: it translates sentences of words, as many at once as there
are, and says what its tokens mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.models.words import Words

Pair = tuple[str, str]  # from which language into which


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is translated, and how much of it was.

    One that is not `closed` may go on: it gets no full stop. `guess` is what may come out; it may
    save work, and changes nothing.
    """

    words: tuple[str, ...]  # with their spacing
    pair: Pair
    said: tuple[int, ...] = ()  # the beginning of its translation
    closed: bool = True
    guess: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Translation:
    """A continuation of what was said of a sentence."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    attention: NDArray[np.float32]  # [tokens, source words]
    ended: bool


class Translator(Protocol):
    """Loaded once, immutable."""

    @property
    def speaks(self) -> tuple[str, ...]:
        """Codes of the languages that it writes; none: it does not say."""

    def between(self, source: str | None, target: str) -> Pair:
        """The languages it would translate between, asked for these; `source` None: its own.

        Raises DragomanError, with a sentence, for languages that it has not.
        """

    def translate(self, sentences: Sequence[Sentence]) -> list[Translation]:
        """Go on with the translation of each sentence."""

    def words(self, tokens: Sequence[int], *, ended: bool, pair: Pair) -> Words:
        """Tokens as words of the language that is translated into."""
