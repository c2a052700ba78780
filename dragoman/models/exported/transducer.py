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
from dragoman.models.exported.stream import ExportedStream
from dragoman.models.search import Found

BEAM = Beam()


def read_groups(net: OnnxNet, stream: ExportedStream, final: bool) -> Found:
    """Read the groups of states that have become complete; all of the rest, if `final`.

    Returns the tokens that are sure and were not said yet. They stay sure: the search goes on from
    them whatever is committed.
    """
    decoded, decision = stream.decoded, net.config.decision
    said = len(stream.window.said)
    groups = -(-stream.encoded.states // decision) if final else stream.encoded.states // decision
    if final and groups and not decoded.survivors[0].ended:
        # A source that ends with a group ends it anew: only the last group may end the sentence.
        decoded.groups = min(decoded.groups, groups - 1)
    while decoded.groups < groups:
        decoded.groups += 1
        last = final and decoded.groups == groups
        seen = min(decoded.groups * decision, stream.encoded.states)
        score = _scorer(net, stream, seen)
        found = search_group(decoded.survivors, score, blank=BOS, end=EOS, final=last, beam=BEAM)
        decoded.survivors = tuple(found)
    best = decoded.survivors[0]
    sure = best.tokens if final else common_prefix(decoded.survivors)
    new = slice(said + 1, len(sure))  # after BOS
    log_probs = best.log_probs[said : len(sure) - 1]
    return Found(sure[new], log_probs, (), best.ended)


def _scorer(net: OnnxNet, stream: ExportedStream, states: int) -> Score:
    """Scores what may follow hypotheses that see the first `states` states."""
    assert stream.encoded.memory is not None
    memory = net.cut(stream.encoded.memory, slice(states))

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
