"""Greedy and beam search over an exported net, from any point of the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dragoman.models.exported.net import BOS, EOS, PAD, Array, Arrays, OnnxNet

NEVER = -np.inf


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop, besides the end of sentence."""

    tokens: int
    enough: Callable[[Sequence[int]], bool] = field(default=lambda tokens: False)
    avoid_end: bool = False  # where the net would end, take the next best
    final: bool = True  # the source has ended: a net that decides for itself must write


@dataclass(frozen=True, slots=True)
class Found:
    """What a search wrote."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    attention: NDArray[np.float32]  # [tokens, layers, S] with which each token was chosen
    ended: bool
    caches: tuple[Arrays, ...] = ()  # before each token but the last was read; see `greedy`


def greedy(
    net: OnnxNet,
    memory: Arrays,
    lengths: Array,
    starts: Sequence[Sequence[int]],
    limits: Sequence[Limits],
    cache: Arrays | None = None,
) -> list[Found]:
    """The best next token, again and again, for a batch.

    `starts` are the tokens that follow the cache (all of one length, at least one): BOS and a
    forced prefix, or the last token said. `Found.caches[n]` is the cache to go on from when n
    tokens of the result are kept, the last of them being the next start.
    """
    cache = net.begin(len(starts)) if cache is None else cache
    rows = [_Row(limit, [cache_row(cache, i)]) for i, limit in enumerate(limits)]
    tokens = np.array(starts, np.int64)
    final = np.array([limit.final for limit in limits])
    while not all(row.done for row in rows):
        step = net.step(tokens, memory, lengths, cache, final)
        cache = step.cache
        tokens = np.full((len(rows), 1), PAD, np.int64)
        for i, row in enumerate(rows):
            if not row.done:
                may_write = step.write is None or bool(step.write[i, -1])
                row.take(step.log_probs[i, -1], step.attention[i, :, -1], may_write)
                row.caches.append(cache_row(cache, i))
                tokens[i] = row.tokens[-1] if row.tokens else PAD
    return [row.found() for row in rows]


def cache_row(cache: Arrays, item: int) -> Arrays:
    """One item's part of a batch's cache."""
    return tuple(array[item : item + 1] for array in cache)


class _Row:
    """One item of a greedy search."""

    def __init__(self, limits: Limits, caches: list[Arrays]) -> None:
        self.limits, self.caches = limits, caches
        self.tokens: list[int] = []
        self.log_probs: list[float] = []
        self.attention: list[NDArray[np.float32]] = []
        self.ended = False
        self.done = limits.tokens < 1

    def take(
        self, log_probs: NDArray[np.float32], attention: NDArray[np.float32], may_write: bool
    ) -> None:
        """Choose the next token, or none."""
        if not may_write:
            self.done = True
            return
        scores = log_probs.copy()
        scores[[PAD, BOS]] = NEVER
        if self.limits.avoid_end:
            scores[EOS] = NEVER
        token = int(scores.argmax())
        if token == EOS:
            self.ended = self.done = True
            return
        self.tokens.append(token)
        self.log_probs.append(float(log_probs[token]))
        self.attention.append(attention)
        full = len(self.tokens) >= self.limits.tokens
        self.done = full or self.limits.enough(self.tokens)

    def found(self) -> Found:
        shape = (0, 0, 0)
        attention = np.stack(self.attention) if self.attention else np.zeros(shape, np.float32)
        return Found(
            tuple(self.tokens),
            tuple(self.log_probs),
            attention,
            self.ended,
            tuple(self.caches[: len(self.tokens) + 1]),
        )


@dataclass(frozen=True, slots=True)
class _Beam:
    tokens: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    attention: tuple[NDArray[np.float32], ...] = ()
    score: float = 0.0

    def ranked(self, penalty: float) -> float:
        return self.score / float((len(self.tokens) + 1) ** penalty)


def beam_search(
    net: OnnxNet,
    memory: Arrays,
    lengths: Array,
    start: Sequence[int],
    limits: Limits,
    *,
    beams: int = 5,
    penalty: float = 1.0,
) -> Found:
    """The best of `beams` hypotheses for one item; scores are divided by length ** penalty.

    `start` is BOS and the forced prefix.
    """
    step = net.step(np.array([start], np.int64), memory, lengths, net.begin(1))
    alive, finished = [_Beam()], []
    for _ in range(limits.tokens):
        grown = _grow(alive, step.log_probs[:, -1], step.attention[:, :, -1], limits, beams)
        finished += [one for one, _, token in grown[:beams] if token == EOS]
        going = [(one, parent) for one, parent, token in grown if token != EOS][:beams]
        alive = [one for one, _ in going]
        best = max((one.ranked(penalty) for one in finished), default=NEVER)
        # What is alive can at best get as long as may be, at no further cost.
        hope = max((one.score for one in alive), default=NEVER) / (limits.tokens + 1) ** penalty
        if hope <= best or len(finished) >= beams or limits.enough(alive[0].tokens):
            break
        parents = [parent for _, parent in going]
        cache = tuple(array[parents] for array in step.cache)
        repeated = tuple(np.repeat(array[:1], len(alive), axis=0) for array in memory)
        tokens = np.array([[one.tokens[-1]] for one in alive], np.int64)
        step = net.step(tokens, repeated, np.repeat(lengths[:1], len(alive)), cache)
    chosen = max(finished or alive, key=lambda one: one.ranked(penalty))
    rows = np.stack(chosen.attention) if chosen.attention else np.zeros((0, 0, 0), np.float32)
    return Found(chosen.tokens, chosen.log_probs, rows, bool(finished))


def _grow(
    alive: Sequence[_Beam],
    log_probs: NDArray[np.float32],
    attention: NDArray[np.float32],
    limits: Limits,
    beams: int,
) -> list[tuple[_Beam, int, int]]:
    """The best continuations with their parent and token; an ended one keeps its tokens."""
    total = log_probs + np.array([[one.score] for one in alive])
    total[:, [PAD, BOS]] = NEVER
    if limits.avoid_end:
        total[:, EOS] = NEVER
    most = min(2 * beams, total.size)
    best = np.argpartition(-total.ravel(), most - 1)[:most]
    grown = []
    for index in best[np.argsort(-total.ravel()[best])]:
        parent, token = divmod(int(index), total.shape[1])
        one, score = alive[parent], float(total[parent, token])
        if score == NEVER:
            continue
        if token == EOS:
            grown.append((_Beam(one.tokens, one.log_probs, one.attention, score), parent, token))
            continue
        longer = _Beam(
            (*one.tokens, token),
            (*one.log_probs, float(log_probs[parent, token])),
            (*one.attention, attention[parent]),
            score,
        )
        grown.append((longer, parent, token))
    return grown
