"""What a synthesiser returns, and the engines that there are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dragoman.errors import DragomanError


@dataclass(frozen=True, slots=True)
class Spoken:
    """Sound (float32, -1 to 1) at its own rate; word and phone ends in seconds where known."""

    sound: np.ndarray
    rate: int
    word_ends: list[float] = field(default_factory=list)
    phones: list[str] = field(default_factory=list)
    phone_ends: list[float] = field(default_factory=list)


class Engine(Protocol):
    """A synthesiser. `draw` draws a voice; `say` speaks with it; both from the generator."""

    name: str

    def draw(self, language: str, random: np.random.Generator) -> str:
        """The name of a random voice, which with its settings says all that `say` needs."""

    def say(self, text: str, voice: str, random: np.random.Generator) -> Spoken:
        """Speak."""


def open_engine(name: str) -> Engine:
    """`espeak`, `hibari`, or any other voice by the name `dragoman voices` gives it."""
    if name == "espeak":
        from dragoman.train.voicing.espeak import Espeak

        return Espeak()
    if name == "hibari":
        from dragoman.train.voicing.neural import HibariEngine

        return HibariEngine()
    from dragoman.train.voicing.neural import NamedVoice

    return NamedVoice(name)


@dataclass(frozen=True, slots=True)
class Share:
    """One engine's part in a corpus: `hibari*0.2`, `kokoro:af_heart*0.1`."""

    engine: str
    weight: float


def parse_shares(text: str) -> tuple[Share, ...]:
    """`espeak*0.8,hibari*0.2` as shares whose weights sum to 1."""
    shares = []
    for part in text.split(","):
        engine, _, weight = part.strip().partition("*")
        try:
            shares.append(Share(engine, float(weight or 1)))
        except ValueError:
            raise DragomanError(
                f"'{weight}' in --voices is not a number; write 'espeak*0.8,hibari*0.2'."
            ) from None
        if not engine or not 0 <= shares[-1].weight < math.inf:
            raise DragomanError(
                f"'{part}' in --voices is not a voice and its share; write 'espeak*0.8,hibari*0.2'."
            )
    total = sum(share.weight for share in shares)
    if total <= 0:
        raise DragomanError("The weights in --voices sum to nothing; give one above 0.")
    return tuple(Share(s.engine, s.weight / total) for s in shares)
