"""Nets whose decoder goes on from its own past (MMA, VGG-BLSTM), all clips of a set side by side.

What `dragoman sweep` finds clip by clip in the loop of live use, with any policy that needs no
attention and counts no words: `follow`, `ksn`, `offline`. Greedy search, nothing told of speech and
silence, no work counted in the lag; a test holds it to the loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from dragoman.models.drafting import Ending, Span, finished
from dragoman.models.exported.model import KEPT_PAST, SPARE_TOKENS
from dragoman.models.exported.net import BOS, EOS, PAD
from dragoman.models.exported.pieces import Pieces
from dragoman.models.search import Found
from dragoman.models.window import Window
from dragoman.policies import Policy
from dragoman.policies.base import Allowance, Said
from dragoman.policies.base import Heard as HeardSoFar
from dragoman.trace import Saying, Trace
from dragoman.train.nets.base import Net
from dragoman.train.nets.mma import MonotonicStep
from dragoman.train.simulate import Clips, Heard, SideBySide

Cache = tuple[Tensor, ...]  # of one clip, the batch being one


@dataclass
class Talk:
    """One clip: what was said of it, and the decoder's past."""

    window: Window
    cache: Cache
    trail: list[Cache] = field(default_factory=list)  # after each token of the last draft
    tokens: list[int] = field(default_factory=list)  # of that draft
    ended: bool = False

    @property
    def last(self) -> int:
        """The token that the decoder has still to read."""
        return (self.tokens or self.window.said or [BOS])[-1]

    @property
    def past(self) -> tuple[torch.Size, ...]:
        """Decoders whose pasts are alike go on together."""
        return tuple(part.shape for part in self.cache)

    def begin(self) -> None:
        self.trail, self.tokens, self.ended = [self.cache], [], False

    def keep(self, tokens: int) -> None:
        """So many tokens of the draft were said."""
        self.cache = self.trail[tokens]


@dataclass(frozen=True)
class Asked:
    """A clip of which something may be said now."""

    talk: Talk
    row: int  # in what was encoded
    final: bool
    most: int  # tokens


class PastSimulation(SideBySide):
    """All clips of a set under one policy."""

    def __init__(self, net: Net, units: Pieces, clips: Clips, policy: Policy, step_ms: float):
        super().__init__(net, units, clips, step_ms)
        self.policy = policy
        begun = net.begin(1)
        self.talks = [Talk(Window(KEPT_PAST, units), begun) for _ in range(len(clips.data))]
        self.decides = net.decides == "monotonic"

    def hear(self, heard: Heard) -> None:
        pairs = zip(heard.ms.tolist(), heard.last.tolist(), strict=True)
        allowed = [None if last else self._allowed(ms) for ms, last in pairs]
        wanted = np.array([one is None or not one.nothing for one in allowed])
        chosen = np.flatnonzero(heard.enough & wanted)
        heard = heard.only(chosen)
        if not len(chosen):
            return
        encoded = self.encode(heard)
        states = encoded.lengths.tolist()
        asked = []
        for row, number in enumerate(heard.here.tolist()):
            may, talk = allowed[int(chosen[row])], self.talks[number]
            most = SPARE_TOKENS + states[row] - len(talk.window.said)
            if may is not None and may.tokens is not None:
                most = min(most, may.tokens)
            asked.append(Asked(talk, row, bool(heard.last[row]), most))
        self._search(asked, self.net.memory(encoded.states), encoded.lengths)
        for number, one in zip(heard.here.tolist(), asked, strict=True):
            self._commit(heard.chunk, number, one.final)

    def _allowed(self, ms: float) -> Allowance:
        return self.policy.allow(HeardSoFar(ms, self.step_ms, 0), Said())

    def _search(self, asked: Sequence[Asked], memory: Cache, lengths: Tensor) -> None:
        """What each clip goes on with: until its net would rather hear more, or the text ends."""
        groups = defaultdict(list)
        for one in asked:
            one.talk.begin()
            if one.most > 0:
                groups[one.talk.past].append(one)
        for going in groups.values():
            past = tuple(map(torch.cat, zip(*(one.talk.cache for one in going), strict=True)))
            while going:
                past, kept = self._step(going, memory, lengths, past)
                going = [going[row] for row in kept]
                past = tuple(part[kept] for part in past)

    def _step(
        self, going: Sequence[Asked], memory: Cache, lengths: Tensor, past: Cache
    ) -> tuple[Cache, list[int]]:
        """One more token of every text; returns the decoder's past, and which texts go on."""
        device = lengths.device
        tokens = torch.tensor([[one.talk.last] for one in going], device=device)
        rows = torch.tensor([one.row for one in going], device=device)
        heard = tuple(part[rows] for part in memory)
        final = torch.tensor([one.final for one in going], device=device)
        step = self.net.step(tokens, heard, lengths[rows], past, *([final] * self.decides))
        scores = step.logits[:, -1].float()
        scores[:, [PAD, BOS]] = -torch.inf
        new = scores.argmax(-1)
        if isinstance(step, MonotonicStep):
            new = torch.where(step.write[:, -1], new, PAD)
        kept = []
        for row, (one, token) in enumerate(zip(going, new.tolist(), strict=True)):
            one.talk.trail.append(tuple(part[row : row + 1] for part in step.cache))
            one.talk.ended = token == EOS
            if token not in (PAD, EOS):
                one.talk.tokens.append(token)
                if len(one.talk.tokens) < one.most:
                    kept.append(row)
        return step.cache, kept

    def _commit(self, chunk: int, number: int, final: bool) -> None:
        talk = self.talks[number]
        found = Found(tuple(talk.tokens), (0.0,) * len(talk.tokens), ended=talk.ended)
        ending = Ending(final, late_stop=not self.decides)
        talk.keep(say_all(talk.window, found, ending, self.traces[number], chunk))


def say_all(window: Window, found: Found, ending: Ending, trace: Trace, chunk: int) -> int:
    """Say all that was found, after a chunk; returns how many tokens those are."""
    draft = finished(window, found, Span(0.0, 0, 1.0), ending, looks=False)
    window.take(draft, len(draft.tokens))
    for word in draft.words + ((draft.tail,) if ending.final and draft.tail else ()):
        trace.said(Saying(word, chunk))
    return len(draft.tokens)
