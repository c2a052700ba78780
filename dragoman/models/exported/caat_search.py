"""CAAT's search: what to write of the source released so far (Liu et al. 2021).

The source is released group by group. Within a group a hypothesis writes tokens until it takes the
blank, which asks for the next group (so does an end of sentence before the source has ended: there
is nothing to add yet); in the last group the blank is gone and the end of sentence finishes.
Hypotheses that wrote the same are one. Between groups few survive, and what all survivors begin
with is final.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

NEVER = -np.inf


@dataclass(frozen=True, slots=True)
class Beam:
    """How wide to search."""

    within: int = 5  # hypotheses that are being written in a group
    between: int = 1  # that go on to the next group
    margin: float = 0.5  # a finished one this much better than all unfinished ends the group
    length_power: float = 0.7  # scores are divided by length to this power
    max_tokens: int = 64  # written in one group at most


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What was written, and the state that scores what may follow its last token."""

    tokens: tuple[int, ...]  # the first is the beginning of sentence
    score: float  # log probability of all arcs taken, blanks included
    log_probs: tuple[float, ...]  # of each token but the first
    state: Any  # before the last token was read
    ended: bool = False  # wrote the end of sentence

    def normalised(self, power: float) -> float:
        return self.score / float(max(1, len(self.tokens) - 1) ** power)

    def write(self, token: int, log_prob: float, state: Any) -> Hypothesis:
        return Hypothesis(
            (*self.tokens, token),
            self.score + log_prob,
            (*self.log_probs, log_prob),
            state,
        )


# Log probabilities of the next token [hypotheses, V], and each one's state after its last token.
Scores = tuple[NDArray[np.float32], Sequence[Any]]
Score = Callable[[Sequence[Hypothesis]], Scores]
T = TypeVar("T")
Search = Generator[Sequence[Hypothesis], Scores, T]  # asks for scores, so that many can go along


def scored(search: Search[T], score: Score) -> T:
    """What a search finds with the scores that it asks for."""
    try:
        wanted = next(search)
        while True:
            wanted = search.send(score(wanted))
    except StopIteration as end:
        found: T = end.value
        return found


def search_group(
    survivors: Sequence[Hypothesis],
    *,
    blank: int,
    end: int,
    final: bool,
    beam: Beam,
) -> Search[list[Hypothesis]]:
    """The best `beam.between` hypotheses that have read this group, best first.

    Its scores look at the source up to this group; `final`: it is the last one.
    """
    power = beam.length_power
    open_ = list(survivors)
    finished: dict[tuple[int, ...], Hypothesis] = {}
    for _ in range(beam.max_tokens + 1):
        log_probs, states = yield open_
        stops = log_probs[:, end] if final else np.logaddexp(log_probs[:, blank], log_probs[:, end])
        for hypothesis, stop in zip(open_, stops, strict=True):
            done = replace(hypothesis, score=hypothesis.score + float(stop), ended=final)
            best = finished.get(done.tokens)
            if best is None or done.score > best.score:
                finished[done.tokens] = done
        open_ = _extend(open_, log_probs, states, {blank, end}, beam)
        best_finished = max(one.normalised(power) for one in finished.values())
        if not open_ or best_finished - beam.margin > max(o.normalised(power) for o in open_):
            break
    ranked = sorted(finished.values(), key=lambda one: -one.normalised(power))
    return ranked[: beam.between]


def _extend(
    open_: Sequence[Hypothesis],
    log_probs: NDArray[np.float32],
    states: Sequence[Any],
    excluded: set[int],
    beam: Beam,
) -> list[Hypothesis]:
    """The best continuations by one token; equal texts are merged by the better score."""
    masked = np.array(log_probs, dtype=np.float64)
    masked[:, list(excluded)] = NEVER
    width = min(beam.within, masked.shape[1] - len(excluded))
    grown: dict[tuple[int, ...], Hypothesis] = {}
    for hypothesis, row, state in zip(open_, masked, states, strict=True):
        for token in np.argpartition(-row, width - 1)[:width]:
            longer = hypothesis.write(int(token), float(row[token]), state)
            twin = grown.get(longer.tokens)
            if longer.score > NEVER and (twin is None or longer.score > twin.score):
                grown[longer.tokens] = longer
    ranked = sorted(grown.values(), key=lambda one: -one.normalised(beam.length_power))
    return ranked[: beam.within]


def common_prefix(survivors: Sequence[Hypothesis]) -> tuple[int, ...]:
    """What all survivors begin with: it can be said."""
    shortest = min((one.tokens for one in survivors), key=len)
    for i, token in enumerate(shortest):
        if any(one.tokens[i] != token for one in survivors):
            return shortest[:i]
    return shortest
