"""Beam search with any net, a batch at a time: for distillation and to watch BLEU in training."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.models.exported.net import BOS, EOS, PAD
from dragoman.train.nets.base import Encoded, Net

NEVER = -1e9
EVERY = 8  # steps between two looks at which items have finished;
ENOUGH = 0.25  # so large a share of them leaves the batch


@torch.no_grad()
def translate(
    net: Net,
    encoded: Encoded,
    beam: int = 1,
    longest: int = 200,
    first: Tensor | None = None,
) -> list[list[int]]:
    """The best token ids of every item, without BOS and EOS; `first` [B]: what they begin with.

    Scores are divided by their number of units, the end included. All beams of all items advance
    together; a finished beam stays and repeats PAD at no cost. Items whose beams have all finished
    leave the batch.
    """
    batch, device = len(encoded.lengths), encoded.states.device
    if first is None:
        first = torch.full((batch,), BOS, dtype=torch.long, device=device)
    texts = Texts(net, encoded, beam, first)
    said: list[list[int]] = [[] for _ in range(batch)]
    for step in range(1, longest + 1):
        texts.advance()
        if bool(texts.done.all()):
            break
        if step % EVERY == 0:
            finished = texts.done.view(-1, beam).all(1)
            if float(finished.float().mean()) >= ENOUGH:
                texts.tell(said, finished)
                texts.keep(~finished)
    texts.tell(said)
    return said


class Texts:
    """What is being written about the items of a batch: `beam` texts about each."""

    def __init__(self, net: Net, encoded: Encoded, beam: int, first: Tensor):
        batch, device = len(encoded.lengths), encoded.states.device
        self.net, self.beam = net, beam
        self.items = torch.arange(batch, device=device)
        self.memory = net.memory(encoded.states.repeat_interleave(beam, 0))
        self.lengths = encoded.lengths.repeat_interleave(beam, 0)
        self.cache = net.begin(batch * beam)
        # Only the first beam of an item counts at first: all of them are alike.
        self.scores = torch.full((batch, beam), NEVER, device=device)
        self.scores[:, 0] = 0.0
        self.written = first.repeat_interleave(beam, 0).unsqueeze(1)
        self.done = torch.zeros(batch * beam, dtype=torch.bool, device=device)
        self.units = torch.zeros(batch * beam, device=device)

    def advance(self) -> None:
        """One more unit of every text."""
        step = self.net.step(self.written[:, -1:], self.memory, self.lengths, self.cache)
        options = _next_scores(step.logits[:, -1].float(), self.done)
        total = self.scores.view(-1, 1) + options  # [B * beam, V]
        best = total.view(len(self.items), -1).topk(self.beam, dim=1)
        self.scores, size = best.values, options.shape[1]
        parent = (self._firsts() + best.indices // size).flatten()
        token = (best.indices % size).flatten()
        self.cache = tuple(part.index_select(0, parent) for part in step.cache)
        self.written = torch.cat([self.written[parent], token.unsqueeze(1)], dim=1)
        self.units = self.units[parent] + (~self.done[parent]).float()
        self.done = self.done[parent] | (token == EOS)

    def tell(self, said: list[list[int]], which: Tensor | None = None) -> None:
        """Put the best text of each item, or of `which`, in its place; the finished go first."""
        shape = self.scores.shape
        ranked = self.scores / self.units.view(shape).clamp(min=1)
        ranked = ranked + torch.where(self.done.view(shape), 0.0, NEVER)
        rows, items = ranked.argmax(1) + self._firsts().squeeze(1), self.items
        if which is not None:
            rows, items = rows[which], items[which]
        for item, row in zip(items.tolist(), self.written[rows].tolist(), strict=True):
            said[item] = _clean(row)

    def keep(self, which: Tensor) -> None:
        """Go on with some of the items."""
        rows = which.repeat_interleave(self.beam)
        self.items, self.scores = self.items[which], self.scores[which]
        self.memory = tuple(part[rows] for part in self.memory)
        self.cache = tuple(part[rows] for part in self.cache)
        for name in ("lengths", "written", "done", "units"):
            setattr(self, name, getattr(self, name)[rows])

    def _firsts(self) -> Tensor:
        """The row of each item's first beam: [B, 1]"""
        return torch.arange(len(self.items), device=self.items.device).unsqueeze(1) * self.beam


def _next_scores(logits: Tensor, done: Tensor) -> Tensor:
    """Log probabilities of what may follow: no BOS or PAD; after the end, PAD alone."""
    logits[:, [BOS, PAD]] = NEVER
    options = logits.log_softmax(-1)
    options = options.masked_fill(done.unsqueeze(1), NEVER)
    options[:, PAD] = torch.where(done, 0.0, NEVER)
    return options


def _clean(ids: list[int]) -> list[int]:
    end = ids.index(EOS) if EOS in ids else len(ids)
    return [unit for unit in ids[1:end] if unit not in (BOS, PAD)]
