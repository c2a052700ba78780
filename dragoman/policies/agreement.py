"""Policies that look at the draft itself: how sure it is, and whether it keeps changing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.models import Draft, Feature
from dragoman.policies.base import Policy


def _in_unit(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise DragomanError(f"{name} must lie between 0 and 1, not {value}.")


@dataclass(frozen=True)
class Confidence(Policy):
    """Says the whole draft when the model is sure enough (paper 002's confidence-aware policy).

    Sure of what: `speech`, that something was spoken (one minus the silence probability, what the
    paper used); or `tokens`, the mean probability of the draft's tokens.
    """

    gamma: float = 0.5
    measure: str = "speech"

    def __post_init__(self) -> None:
        _in_unit("The confidence threshold gamma", self.gamma)
        if self.measure not in {"speech", "tokens"}:
            raise DragomanError(
                f"The confidence policy measures 'speech' or 'tokens', not '{self.measure}'."
            )

    @property
    def needs(self) -> frozenset[Feature]:
        return frozenset({Feature.SILENCE}) if self.measure == "speech" else frozenset()

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        speech = self.measure == "speech"
        sure = 1.0 - (draft.silence or 0.0) if speech else draft.probability
        return draft.whole(len(draft.tokens)) if sure >= self.gamma else 0


@dataclass(frozen=True)
class Consensus(Policy):
    """Says the whole draft when it is like the one before (paper 002).

    Likeness is one minus the edit distance over the longer length, in characters. The paper's
    text puts the ratio upside down; its table (a larger alpha is slower and better) settles it.
    """

    alpha: float = 0.75

    def __post_init__(self) -> None:
        _in_unit("The consensus threshold alpha", self.alpha)

    @property
    def memory(self) -> int:
        return 1

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        if not past or likeness(past[-1].text, draft.text) < self.alpha:
            return 0
        return draft.whole(len(draft.tokens))


def likeness(a: str, b: str) -> float:
    """1 for equal texts, 0 for texts with nothing in common."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(a.strip(), b.strip()))


@dataclass(frozen=True)
class LocalAgreement(Policy):
    """LA-n: says the words on which the last n drafts agree from the start."""

    n: int = 2

    def __post_init__(self) -> None:
        if self.n < 2:
            raise DragomanError(f"Local agreement compares 2 drafts or more, not {self.n}.")

    @property
    def memory(self) -> int:
        return self.n - 1

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        agreed = agreed_words(draft, past, self.n)
        return draft.ends[agreed - 1] if agreed else 0


def agreed_words(draft: Draft, past: Sequence[Draft], n: int) -> int:
    """How many words the last `n` drafts, this one included, share from the start."""
    if len(past) < n - 1:
        return 0
    return min(common_prefix(draft.words, earlier.words) for earlier in past[1 - n :])


def common_prefix(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words two drafts share from the start."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
