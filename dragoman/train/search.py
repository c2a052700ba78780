"""Beam search with any net, a batch at a time: for distillation and to watch BLEU in training."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.train.nets.base import BOS, EOS, PAD, Encoded, Net

NEVER = -1e9


@torch.no_grad()
def translate(
    net: Net,
    encoded: Encoded,
    beam: int = 1,
    longest: int = 200,
    penalty: float = 1.0,
    first: Tensor | None = None,
) -> list[list[int]]:
    """The best token ids of every item, without BOS and EOS; `first` [B]: what they begin with.

    Scores are divided by length ** penalty. All beams of all items advance together; a finished
    beam stays and repeats PAD at no cost.
    """
    batch = len(encoded.lengths)
    states = encoded.states.repeat_interleave(beam, 0)
    lengths = encoded.lengths.repeat_interleave(beam, 0)
    memory, cache = net.memory(states), net.begin(batch * beam)
    device = states.device
    # Only the first beam of an item counts at first: all of them are alike.
    scores = torch.full((batch, beam), NEVER, device=device)
    scores[:, 0] = 0.0
    if first is None:
        first = torch.full((batch,), BOS, dtype=torch.long, device=device)
    written = first.repeat_interleave(beam, 0).unsqueeze(1)
    done = torch.zeros(batch * beam, dtype=torch.bool, device=device)
    units = torch.zeros(batch * beam, device=device)
    for _ in range(longest):
        step = net.step(written[:, -1:], memory, lengths, cache)
        options = _next_scores(step.logits[:, -1].float(), done)
        total = scores.view(-1, 1) + options  # [B * beam, V]
        best = total.view(batch, -1).topk(beam, dim=1)
        scores, size = best.values, options.shape[1]
        rows = torch.arange(batch, device=device).unsqueeze(1) * beam
        parent = (rows + best.indices // size).flatten()
        token = (best.indices % size).flatten()
        cache = tuple(part.index_select(0, parent) for part in step.cache)
        written = torch.cat([written[parent], token.unsqueeze(1)], dim=1)
        units = units[parent] + (~done[parent]).float()
        done = done[parent] | (token == EOS)
        if bool(done.all()):
            break
    ranked = scores / units.view(batch, beam).clamp(min=1) ** penalty
    ranked = ranked + torch.where(done.view(batch, beam), 0.0, NEVER)  # the finished go first
    chosen = ranked.argmax(1) + torch.arange(batch, device=device) * beam
    return [_clean(row) for row in written[chosen].tolist()]


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
