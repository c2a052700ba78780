"""CAAT's transducer loss in plain PyTorch: all ways to interleave reading and writing.

The source comes in G groups of states. A path starts at group 1 with nothing written; in group g
with u tokens written it writes token u+1 (label) or reads the next group (blank); the last blank is
taken in group G after all U tokens. With A(g, u) the log probability of all paths to (g, u):

    A(g, u) = log(exp[A(g-1, u) + blank(g-1, u)] + exp[A(g, u-1) + label(g, u-1)])
    log P   = A(G, U) + blank(G, U)

Writing token u in group g costs c(g, u) = max(0, g U / G - (u + 1)) / U (g and u from 1): how far
it lags behind a translator who keeps pace. The mean cost of the paths to (g, u), each with its
posterior probability, is carried along the same lattice:

    E(g, u) = w E(g, u-1) + w c(g, u) + (1 - w) E(g-1, u)        w = exp(label arc - A(g, u))

Cells of one anti-diagonal d = g + u do not depend on each other, so the lattice takes G + U steps
of vectors [B, G]. Gradients, also of E, are autograd's.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

NEVER = -1e9  # a log probability of zero that stays finite under addition


def transducer(
    blank: Tensor, label: Tensor, groups: Tensor, units: Tensor
) -> tuple[Tensor, Tensor]:
    """log P(target | source) and the expected cost of its delays, both [B].

    blank [B, G, U + 1] and label [B, G, U]: float32 log probabilities of the two arcs out of each
    cell;
    groups [B] and units [B]: how many of G and U each sentence has.
    """
    batch, most_groups, _ = blank.shape
    cost = F.pad(lag_cost(groups, units, most_groups, label.shape[2]), (0, 1))
    label = F.pad(label, (0, 1), value=NEVER)
    blank, label, cost = _skew(blank, NEVER), _skew(label, NEVER), _skew(cost, 0.0)

    total = blank.new_full((batch, most_groups), NEVER)
    total[:, 0] = 0
    mean = torch.zeros_like(total)
    totals, means = [total], [mean]
    for d in range(blank.shape[1] - 1):
        wrote = total + label[:, d]
        read = F.pad((total + blank[:, d])[:, :-1], (1, 0), value=NEVER)
        share = (wrote - read).sigmoid()
        mean = share * (mean + cost[:, d]) + (1 - share) * F.pad(mean[:, :-1], (1, 0))
        total = torch.logaddexp(wrote, read)
        totals.append(total)
        means.append(mean)

    item = torch.arange(batch, device=blank.device)
    last = (item, groups - 1 + units, groups - 1)  # (G, U), where every path ends
    log_p = torch.stack(totals, 1)[last] + blank[last]
    return log_p, torch.stack(means, 1)[last]


def lag_cost(groups: Tensor, units: Tensor, most_groups: int, most_units: int) -> Tensor:
    """c(g, u) of writing token u in group g: [B], [B] -> [B, G, U]"""
    g = torch.arange(1, most_groups + 1, device=groups.device).unsqueeze(1)
    u = torch.arange(1, most_units + 1, device=groups.device)
    written, heard = units[:, None, None].clamp(min=1), groups[:, None, None]
    return (g * written / heard - (u + 1)).clamp(min=0) / written


def _skew(x: Tensor, fill: float) -> Tensor:
    """Anti-diagonals as rows: y[b, d, g] = x[b, g, d - g], [B, G, N] -> [B, G + N - 1, G]"""
    groups, size = x.shape[1:]
    d = torch.arange(groups + size - 1, device=x.device).unsqueeze(1)
    u = d - torch.arange(groups, device=x.device)
    inside = (u >= 0) & (u < size)
    index = u.clamp(0, size - 1).expand(len(x), -1, -1)
    return torch.where(inside, x.transpose(1, 2).gather(1, index), fill)


def arc_scores(
    hidden: Tensor, output: torch.nn.Linear, targets: Tensor, blank: int, rows: int = 6000
) -> tuple[Tensor, Tensor]:
    """Log probabilities of blank [B, G, U + 1] and of the next token [B, G, U].

    hidden [B, G, U + 1, D] is mapped to the vocabulary `rows` rows at a time, and once more for the
    gradient: logits for all of B G U V never exist together. targets [B, U].
    """
    batch, groups, cells, _ = hidden.shape
    wanted = F.pad(targets, (0, 1), value=blank)[:, None].expand(batch, groups, cells)
    pieces = [
        checkpoint(_blank_and_label, h, w, output.weight, output.bias, blank, use_reentrant=False)
        for h, w in zip(hidden.flatten(0, 2).split(rows), wanted.flatten().split(rows), strict=True)
    ]
    blanks, labels = (torch.cat(p).view(batch, groups, cells) for p in zip(*pieces, strict=True))
    return blanks, labels[..., :-1]


def _blank_and_label(
    hidden: Tensor, wanted: Tensor, weight: Tensor, bias: Tensor | None, blank: int
) -> tuple[Tensor, Tensor]:
    """hidden [N, D], wanted [N] -> log probabilities [N] of blank and of the wanted token"""
    scores = F.linear(hidden, weight, bias).float().log_softmax(-1)
    return scores[:, blank], scores.gather(1, wanted.unsqueeze(1)).squeeze(1)
