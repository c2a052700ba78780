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
    Scores,
    Search,
    common_prefix,
    scored,
    search_group,
)
from dragoman.models.exported.net import BOS, EOS, PAD, Arrays, OnnxNet
from dragoman.models.exported.stream import Decoded, ExportedStream
from dragoman.models.search import Found

BEAM = Beam()


def read_groups(net: OnnxNet, stream: ExportedStream, final: bool) -> Found:
    """Read the groups of states that have become complete; all of the rest, if `final`.

    Returns the tokens that are sure and were not said yet. They stay sure: the search goes on from
    them whatever is committed.
    """
    decoded, states, decision = stream.decoded, stream.encoded.states, net.config.decision
    reading = read_on(decoded, states, decision, final)
    scored(reading, lambda hypotheses: _score(net, stream, decoded.seen, hypotheses))
    return sure(decoded, len(stream.window.said), final)


def read_on(decoded: Decoded, states: int, decision: int, final: bool) -> Search[None]:
    """Search the groups that are complete among `states`, with scores that see `decoded.seen`."""
    groups = -(-states // decision) if final else states // decision
    if final and groups and not decoded.survivors[0].ended:
        # A source that ends with a group ends it anew: only the last group may end the sentence.
        decoded.groups = min(decoded.groups, groups - 1)
    while decoded.groups < groups:
        decoded.groups += 1
        decoded.seen = min(decoded.groups * decision, states)
        last = final and decoded.groups == groups
        search = search_group(decoded.survivors, blank=BOS, end=EOS, final=last, beam=BEAM)
        decoded.survivors = tuple((yield from search))


def sure(decoded: Decoded, said: int, final: bool) -> Found:
    """What was decided and is not among the tokens `said`."""
    best = decoded.survivors[0]
    tokens = best.tokens if final else common_prefix(decoded.survivors)
    new = slice(said + 1, len(tokens))  # after BOS
    return Found(tokens[new], best.log_probs[said : len(tokens) - 1], (), best.ended)


def _score(
    net: OnnxNet, stream: ExportedStream, states: int, hypotheses: Sequence[Hypothesis]
) -> Scores:
    """What may follow hypotheses that see the first `states` states."""
    assert stream.encoded.memory is not None
    memory = net.cut(stream.encoded.memory, slice(states))
    rows: list[Any] = [None] * len(hypotheses)
    after: list[Any] = [None] * len(hypotheses)
    for members in _of_one_length(hypotheses):
        log_probs, caches = _step(net, [hypotheses[i] for i in members], memory, states)
        for i, row, cache in zip(members, log_probs, caches, strict=True):
            rows[i], after[i] = row, cache
    return np.stack(rows), after


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
