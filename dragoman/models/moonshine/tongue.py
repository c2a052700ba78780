"""Whether it is English that Moonshine hears: its states tell before its words do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from dragoman.models.search import Floats

FILE = "tongues.json"  # made by recipes/tongues/learn.py
NEWEST, FEWEST = 250, 125  # states by which a language is told
# Their mean below which it is another; 0, where a hundredth of English lies below, is too near for
# talk, which has pauses and noises.
OTHER = -2.0


@dataclass(frozen=True, eq=False)
class Tongue:
    """One number for each state; their mean is low where another language is spoken."""

    weight: Floats
    bias: float

    def __call__(self, states: Floats) -> Floats:
        """`[states, width]` -> `[states]`"""
        return states @ self.weight + np.float32(self.bias)


def no_judgement(states: Floats | None = None) -> Floats:
    """What is known of states that nobody can judge."""
    return np.zeros(0, np.float32)


def foreign(judged: Floats) -> bool:
    """Whether another language is spoken, as far as the newest states tell."""
    newest = judged[-NEWEST:]
    return len(newest) >= FEWEST and float(newest.mean()) < OTHER


@cache
def tongues() -> dict[int, Tongue]:
    """Those that were learned, by the width of the states: tiny's is 288, base's 416."""
    text = (files(__package__) / FILE).read_text(encoding="utf-8")
    return {
        int(width): Tongue(np.array(one["weight"], np.float32), float(one["bias"]))
        for width, one in json.loads(text).items()
    }
