"""Policies that ask where the model looks: a word that leans on the newest audio must wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError
from dragoman.models import Draft, Feature
from dragoman.policies.base import Policy


@dataclass(frozen=True)
class AlignAtt(Policy):
    """Says tokens until the first whose attention peaks within the last `f` frames heard."""

    f: int = 4

    @property
    def needs(self) -> frozenset[Feature]:
        return frozenset({Feature.ATTENTION})

    def __post_init__(self) -> None:
        if self.f < 0:
            raise DragomanError(f"AlignAtt's f counts frames: 0 or more, not {self.f}.")

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        attention = _attention(draft)
        if not attention.size:
            return 0 if self.f else draft.whole(len(draft.tokens))
        peaks = attention.argmax(axis=1)
        return draft.whole(_first(peaks >= attention.shape[1] - self.f))


@dataclass(frozen=True)
class EDAtt(Policy):
    """Says tokens until the first that puts `alpha` or more of its attention on the last frames."""

    alpha: float = 0.1
    frames: int = 2

    @property
    def needs(self) -> frozenset[Feature]:
        return frozenset({Feature.ATTENTION})

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0 or self.frames < 1:
            raise DragomanError(
                f"EDAtt needs alpha between 0 and 1 and 1 frame or more, "
                f"not {self.alpha} and {self.frames}."
            )

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        attention = _attention(draft)
        if not attention.size:
            return 0
        total = np.maximum(attention.sum(axis=1), 1e-9)
        recent = attention[:, -self.frames :].sum(axis=1) / total
        return draft.whole(_first(recent >= self.alpha))


def _attention(draft: Draft) -> NDArray[np.float32]:
    """[tokens, frames] without the last frame, a known sink of attention."""
    if not draft.tokens:  # nothing was drafted, so nothing looked anywhere
        return np.zeros((0, 0), np.float32)
    if draft.attention is None:
        raise DragomanError("This draft carries no attention; choose another policy.")
    return draft.attention[:, :-1]


def _first(stop: NDArray[np.bool_]) -> int:
    """Index of the first token to hold back; all may go if there is none."""
    return int(stop.argmax()) if stop.any() else len(stop)
