"""The two ends of the scale, and the policy that follows a model which decides for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.models import Draft, Feature
from dragoman.policies.base import NOTHING, Allowance, Heard, Policy, Said


@dataclass(frozen=True)
class Greedy(Policy):
    """Says every draft at once, whole words only (paper 002)."""

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        return draft.whole(len(draft.tokens))


@dataclass(frozen=True)
class Offline(Policy):
    """Says nothing before the end (paper 002)."""

    def allow(self, heard: Heard, said: Said) -> Allowance:
        return NOTHING


@dataclass(frozen=True)
class Follow(Policy):
    """Says what a model with its own read/write decisions (MMA, CAAT) decided to write."""

    @property
    def needs(self) -> frozenset[Feature]:
        return frozenset({Feature.DECISIONS})
