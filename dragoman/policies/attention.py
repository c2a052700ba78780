"""Policies that ask where the model looks: a word that leans on the newest audio must wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError
from dragoman.models import Draft, Feature
from dragoman.policies.agreement import agreed_words
from dragoman.policies.base import Policy


@dataclass(frozen=True)
class AlignAtt(Policy):
    """Says tokens until the first whose attention peaks within the `last` ms heard."""

    last: float = 160.0

    @property
    def needs(self) -> frozenset[Feature]:
        return frozenset({Feature.ATTENTION})

    def __post_init__(self) -> None:
        if not 0 <= self.last < inf:
            raise DragomanError(f"AlignAtt holds back 0 ms of sound or more, not {self.last:g}.")

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        attention = _attention(draft)
        if not attention.size:
            return 0 if self.last else draft.whole(len(draft.tokens))
        peaks = attention.argmax(axis=1)
        newest = frames_of(self.last, draft)
        return draft.whole(_first(peaks >= attention.shape[1] - newest))


@dataclass(frozen=True)
class EDAtt(Policy):
    """Says tokens until the first that puts `alpha` or more of its attention on the `last` ms."""

    alpha: float = 0.1
    last: float = 80.0

    @property
    def needs(self) -> frozenset[Feature]:
        return frozenset({Feature.ATTENTION})

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0 or not 0 < self.last < inf:
            raise DragomanError(
                f"EDAtt needs alpha between 0 and 1 and more than 0 ms of sound, "
                f"not {self.alpha:g} and {self.last:g}."
            )

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        attention = _attention(draft)
        if not attention.size:
            return 0
        total = np.maximum(attention.sum(axis=1), 1e-9)
        newest = max(1, frames_of(self.last, draft))
        recent = attention[:, -newest:].sum(axis=1) / total
        return draft.whole(_first(recent >= self.alpha))


@dataclass(frozen=True)
class AgreeAtt(Policy):
    """Says the words that several signs together call final.

    A word on which the last `n` drafts agree goes out when the model is `sure` of it (all its
    tokens are that probable), or when it looks at sound at least `old` ms old. A word on which
    they do not agree goes out when it is `alone` ms old, so that nothing waits for ever.

    Agreement by itself is fooled by a mistake made twice at the edge of the sound, attention by a
    glance astray, probability by fluent nonsense; asked together, each may be asked for less.
    """

    old: float = 1500.0
    alone: float = 2500.0
    sure: float = 0.8
    n: int = 2

    @property
    def needs(self) -> frozenset[Feature]:
        return frozenset({Feature.ATTENTION})

    @property
    def memory(self) -> int:
        return self.n - 1

    def __post_init__(self) -> None:
        if self.n < 2:
            raise DragomanError(f"AgreeAtt compares 2 drafts or more, not {self.n}.")
        if not 0.0 <= self.old <= self.alone:
            raise DragomanError(
                f"AgreeAtt needs 0 <= old <= alone (in ms), not {self.old:g} and {self.alone:g}."
            )

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        attention = _attention(draft)
        if not attention.size:
            return 0
        age = ages(attention, draft.frame_ms)
        probable = np.array(draft.log_probs) >= np.log(max(self.sure, 1e-9))
        agreed = agreed_words(draft, past, self.n)
        together = min(
            _first((age < self.old) & ~probable), draft.ends[agreed - 1] if agreed else 0
        )
        return draft.whole(max(together, _first(age < self.alone)))


def ages(attention: NDArray[np.float32], frame_ms: float) -> NDArray[np.float64]:
    """How long ago the sound was that each token leans on, in ms.

    That is where its attention peaks, or where half of it is spent if that comes later: a peak far
    back with most of the attention after it is a glance astray.
    """
    spent = np.cumsum(attention, axis=1)
    middle = (spent < 0.5 * spent[:, -1:]).sum(axis=1)
    newest = np.maximum(attention.argmax(axis=1), middle)
    return np.asarray((attention.shape[1] - newest) * frame_ms, np.float64)


def frames_of(ms: float, draft: Draft) -> int:
    """The frames of a draft's attention that make up the newest `ms` of it."""
    return round(ms / draft.frame_ms) if draft.frame_ms else 0


def _attention(draft: Draft) -> NDArray[np.float32]:
    """[tokens, frames]"""
    if not draft.tokens:  # nothing was drafted, so nothing looked anywhere
        return np.zeros((0, 0), np.float32)
    if draft.attention is None:
        raise DragomanError("This draft carries no attention; choose another policy.")
    return draft.attention


def _first(stop: NDArray[np.bool_]) -> int:
    """Index of the first token to hold back; all may go if there is none."""
    return int(stop.argmax()) if stop.any() else len(stop)
