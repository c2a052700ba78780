"""What a transducer (CAAT) writes of the source that has been released to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.models.exported.caat_search import (
    Beam,
    Hypothesis,
    Score,
    common_prefix,
    search_group,
)
from dragoman.models.exported.net import BOS, EOS, PAD, Arrays, OnnxNet
from dragoman.models.exported.search import Found
from dragoman.models.exported.stream import OnnxStream

BEAM = Beam()


def read_groups(net: OnnxNet, stream: OnnxStream, final: bool) -> Found:
    """Read the groups of states that have become complete; all of the rest, if `final`.

    Gives the tokens that are sure and were not said yet. They stay sure: the search goes on from
    them whatever is committed.
    """
    mouth, decision = stream.mouth, net.config.decision
    groups = -(-stream.ears.states // decision) if final else stream.ears.states // decision
    if final and groups and not mouth.survivors[0].ended:
        # A source that ends with a group ends it anew: only the last group may end the sentence.
        mouth.groups = min(mouth.groups, groups - 1)
    while mouth.groups < groups:
        mouth.groups += 1
        last = final and mouth.groups == groups
        seen = min(mouth.groups * decision, stream.ears.states)
        score = _scorer(net, stream, seen)
        found = search_group(mouth.survivors, score, blank=BOS, end=EOS, final=last, beam=BEAM)
        mouth.survivors = tuple(found)
    best = mouth.survivors[0]
    sure = best.tokens if final else common_prefix(mouth.survivors)
    new = slice(len(mouth.said) + 1, len(sure))  # after BOS
    log_probs = best.log_probs[len(mouth.said) : len(sure) - 1]
    return Found(sure[new], log_probs, np.zeros((0, 0, 0), np.float32), best.ended)


def _scorer(net: OnnxNet, stream: OnnxStream, states: int) -> Score:
    """Scores what may follow hypotheses that see the first `states` states."""
    assert stream.ears.memory is not None
    memory = net.cut(stream.ears.memory, slice(states))

    def score(hypotheses: Sequence[Hypothesis]) -> tuple[NDArray[np.float32], Sequence[Any]]:
        rows: list[Any] = [None] * len(hypotheses)
        after: list[Any] = [None] * len(hypotheses)
        for members in _of_one_length(hypotheses):
            log_probs, caches = _step(net, [hypotheses[i] for i in members], memory, states)
            for i, row, cache in zip(members, log_probs, caches, strict=True):
                rows[i], after[i] = row, cache
        return np.stack(rows), after

    return score


def _of_one_length(hypotheses: Sequence[Hypothesis]) -> list[list[int]]:
    groups: dict[int, list[int]] = defaultdict(list)
    for i, hypothesis in enumerate(hypotheses):
        groups[len(hypothesis.tokens)].append(i)
    return list(groups.values())


def _step(
    net: OnnxNet, hypotheses: Sequence[Hypothesis], memory: Arrays, states: int
) -> tuple[NDArray[np.float32], list[Arrays]]:
    """One step for hypotheses of the same length: log-probabilities and caches."""
    count = len(hypotheses)
    tokens = np.array([[one.tokens[-1]] for one in hypotheses], np.int64)
    pasts = [one.state or net.begin(1) for one in hypotheses]
    cache = tuple(np.concatenate(parts) for parts in zip(*pasts, strict=True))
    repeated = tuple(np.repeat(array, count, axis=0) for array in memory)
    step = net.step(tokens, repeated, np.full(count, states, np.int64), cache)
    log_probs = step.log_probs[:, -1].copy()
    log_probs[:, PAD] = -np.inf
    return log_probs, [tuple(a[i : i + 1] for a in step.cache) for i in range(count)]
