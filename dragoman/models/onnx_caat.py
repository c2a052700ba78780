"""What an exported CAAT writes of what it has heard: group by group, by search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.models.caat_search import Beam, Hypothesis, common_prefix, search_group
from dragoman.models.onnx_net import BOS, EOS, PAD, UNK, Arrays, OnnxNet

BLANK = BOS
DEFAULT = Beam()


@dataclass(frozen=True, slots=True)
class Searched:
    """How far the search has come; what all survivors begin with may be said."""

    survivors: tuple[Hypothesis, ...]
    groups: int  # of the source that were searched
    ended: bool = False

    @property
    def tokens(self) -> tuple[int, ...]:
        """Without the beginning of sentence."""
        return common_prefix(self.survivors)[1:]

    @property
    def log_probs(self) -> tuple[float, ...]:
        return self.survivors[0].log_probs[: len(self.tokens)]


def beginning(net: OnnxNet) -> Searched:
    return Searched((Hypothesis((BOS,), 0.0, (), net.begin(1)),), 0)


def search(
    net: OnnxNet,
    memory: Arrays,
    states: int,
    before: Searched,
    *,
    final: bool,
    beam: Beam = DEFAULT,
) -> Searched:
    """Search the groups that were heard in full since `before`, or all that is left if `final`.

    memory: what was heard, `states` long, of one stream.
    """
    if before.ended or (final and not states):
        return replace(before, ended=True)
    step = net.config.decision
    complete = -(-states // step) if final else states // step
    # A source that ends with a group ends it anew: only the last group may end the sentence.
    first = min(before.groups, complete - 1) if final else before.groups
    survivors, after = before.survivors, before
    for group in range(first, complete):
        seen = min(states, (group + 1) * step)
        last = final and group == complete - 1
        survivors = tuple(
            search_group(
                survivors,
                _Scorer(net, net.cut(memory, slice(seen)), seen),
                blank=BLANK,
                end=EOS,
                final=last,
                beam=beam,
            )
        )
        after = Searched(survivors, group + 1, last)
    return after


@dataclass(frozen=True, slots=True)
class _Scorer:
    """Scores what may follow hypotheses that see `seen` states."""

    net: OnnxNet
    memory: Arrays
    seen: int

    def __call__(
        self, hypotheses: Sequence[Hypothesis]
    ) -> tuple[NDArray[np.float32], Sequence[Any]]:
        """Hypotheses of one length go through the decoder together."""
        rows: list[NDArray[np.float32]] = []
        states: list[Arrays] = []
        for _, same in groupby(hypotheses, key=lambda one: len(one.tokens)):
            batch = list(same)
            tokens = np.array([[one.tokens[-1]] for one in batch])
            cache = tuple(
                np.concatenate(parts) for parts in zip(*(h.state for h in batch), strict=True)
            )
            memory = tuple(np.repeat(part, len(batch), axis=0) for part in self.memory)
            lengths = np.full(len(batch), self.seen)
            step = self.net.step(tokens, memory, lengths, cache)
            rows.extend(step.log_probs[:, -1])
            states.extend(tuple(part[i : i + 1] for part in step.cache) for i in range(len(batch)))
        table = np.array(rows)
        table[:, [PAD, UNK]] = -np.inf
        return table, states
