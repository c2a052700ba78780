"""Sound that holds numbers and a model that reads them: what is lost, or said twice, is seen.

A number is 200 ms of one level. The model knows no time but what it hears, so it reads the same
numbers wherever it is made to begin.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.models import Ask, Draft, Feature
from tests.scripted import spell

LENGTH = RATE // 5
STEP = 8 / 32768  # between the levels of two numbers
WINDOW = 12  # numbers that were said and whose sound is kept


def sound_of(first: int, count: int) -> np.ndarray:
    """The sound of the numbers from `first` on."""
    return np.repeat(np.arange(first + 1, first + count + 1) * STEP, LENGTH).astype(np.float32)


def words_of(count: int) -> list[tuple[int, str]]:
    """What shall be said of it, numbered."""
    return [(number + 1, f" {number}") for number in range(count)]


class NumberStream:
    """Keeps the sound of the numbers that were said last, and of those not said yet."""

    transcript = ()
    words_heard = ends_heard = 0

    def __init__(self, language: str | None) -> None:
        self.language = language
        self.heard_ms = 0.0
        self.start_ms = 0.0
        self.sound = np.zeros(0, np.float32)
        self.said = 0  # of the numbers in the sound that is kept

    @property
    def open(self) -> tuple[float, int]:
        return self.start_ms, sum(len(word.strip()) for word in self.words()[: self.said])

    def words(self) -> list[str]:
        """The numbers that are there for at least half their length."""
        levels = np.round(self.sound / STEP).astype(int)
        edges = [0, *(np.flatnonzero(np.diff(levels)) + 1), len(levels)]
        return [
            f" {levels[a] - 1}" for a, b in pairwise(edges) if b - a >= LENGTH // 2 and levels[a]
        ]

    def trim(self) -> None:
        whole = self.said - WINDOW // 2
        if self.said >= WINDOW:
            self.sound = self.sound[whole * LENGTH :]
            self.start_ms += whole * 200.0
            self.said -= whole


class NumberModel:
    """Says every number that it has heard half of."""

    name = "numbers"
    hears = speaks = ()
    features = frozenset({Feature.ATTENTION})

    def __init__(self, seconds: float = 0.0) -> None:
        """What a draft costs, in time that it sleeps."""
        self.seconds = seconds
        self.hasty = 0  # drafts that were made so

    def open(self, source, target, *, transcript=False) -> NumberStream:
        return NumberStream(source)

    def hear(self, streams, sounds) -> None:
        for stream, sound in zip(streams, sounds, strict=True):
            stream.sound = np.concatenate([stream.sound, sound.samples])
            stream.heard_ms += len(sound.samples) * 1000 / RATE

    def draft(self, streams, asks) -> list[Draft]:
        for ask in asks:
            self.hasty += ask.hasty
            time.sleep(self.seconds)
        return [self._draft(stream, ask) for stream, ask in zip(streams, asks, strict=True)]

    def _draft(self, stream: NumberStream, ask: Ask) -> Draft:
        draft = spell(stream.words()[stream.said :], 1, ended=True)
        frames = max(1, int(stream.heard_ms / 40))
        looks = np.full((len(draft.tokens), frames), 1 / frames, np.float32)
        looks[:, -1] = 1  # at what was heard last
        return replace(draft, attention=looks, frame_ms=40.0)

    def commit(self, stream, draft, tokens, closed=False) -> None:
        stream.said += draft.words_within(tokens)
        stream.trim()


def numbers() -> NumberModel:
    """A model for `--model tests.serve.numbers:numbers`."""
    return NumberModel()


class _Uncut(NumberStream):
    """Does not tell from where on it would have to be heard again."""

    open = None


class _UncutModel(NumberModel):
    def open(self, source, target, *, transcript=False) -> NumberStream:
        return _Uncut(source)


def uncut_numbers() -> NumberModel:
    """A model that knows of nothing but pauses, as a cascade does; and nobody makes one."""
    return _UncutModel()


def restless_numbers() -> NumberModel:
    """The same, in a process whose clock on the wall is set, back and forth, all the time."""
    tell, chance = time.time, random.Random(1)

    def set_again() -> float:
        return max(0.0, tell() + chance.choice((0.0, 0.0, -7200.0, 7200.0, 1e9, -1e9)))

    time.time = set_again
    return NumberModel()
