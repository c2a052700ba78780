"""Regularisers that let text guide speech: CAR (Tang 2021) and DAR (Zaidi 2022, equations 7-12).

Both rebuild the text's representation from the speech's, by attention, and compare it with the text
rebuilt from itself. The text side is a reference: no gradient reaches it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.train.nets.layers import HIDDEN, valid


def cross_attentive(
    speech: Tensor, speech_lengths: Tensor, text: Tensor, text_lengths: Tensor
) -> Tensor:
    """CAR on the top shared encoder layer, summed over text positions.

    speech Y [B, K, D], text X [B, L, D], rows scaled to unit length:
    sum_l || (softmax(X Y') Y)_l - sg (softmax(X X') X)_l ||
    """
    y = F.normalize(speech.float(), dim=-1, eps=1e-6)
    x = F.normalize(text.detach().float(), dim=-1, eps=1e-6)
    from_speech = _rebuild(x, y, speech_lengths)
    from_text = _rebuild(x, x, text_lengths)
    distance = _norm(from_speech - from_text, dim=-1)
    return (distance * valid(text_lengths, text.shape[1])).sum()


def _rebuild(query: Tensor, source: Tensor, lengths: Tensor) -> Tensor:
    """softmax(query source') source over the real rows of the source: [B, L, D]"""
    scores = query @ source.transpose(1, 2)
    scores = scores.masked_fill(~valid(lengths, source.shape[1]).unsqueeze(1), HIDDEN)
    return scores.softmax(-1) @ source


def decision_attentive(
    speech: list[Tensor],
    text: list[Tensor],
    speech_counts: Tensor,
    text_counts: Tensor,
    units: Tensor,
    per_head: bool = False,
    unit_values: bool = False,
) -> Tensor:
    """DAR: mean over decoder layers, sum over sentences, of the distance between decisions.

    speech, text: noise-free monotonic energies of each decoder layer, [B, H, U, K] and
    [B, H, U, L]; speech_counts, text_counts, units: how many of K, L, U are real, [B].

    A column, all units' energies for one source position of one head, is a vector; the heads'
    columns stand side by side (7, 8), A_s [U, K H] and A_t [U, L H]. With S the cosines between
    columns (9), every text column is rebuilt as a mix of speech columns, A_s softmax(S) (10), and
    compared with the mix of text columns, || A_s softmax(S_st) - sg A_t softmax(S_tt) || (11); the
    mean over columns and layers is the loss (12).

    The paper leaves two things open. Heads mix across each other as written; `per_head` keeps them
    apart. Values are raw energies as written; `unit_values` takes columns of length one, so that
    the loss does not grow with the energies.
    """
    total = speech[0].new_zeros((), dtype=torch.float32)
    for a, b in zip(speech, text, strict=True):
        source = _columns(a, units, speech_counts, per_head)
        reference = _columns(b.detach(), units, text_counts, per_head)
        total = total + _dar_layer(*source, *reference, unit_values)
    return total / len(speech)


def _columns(
    energy: Tensor, units: Tensor, counts: Tensor, per_head: bool
) -> tuple[Tensor, Tensor]:
    """Energies [B, H, U, K] -> columns [B, M, U, N] and which are real [B, M, N].

    M x N is 1 x H K, or H x K where heads stay apart. Padded units become zeros.
    """
    real = valid(counts, energy.shape[3]).unsqueeze(1).expand(-1, energy.shape[1], -1)
    rows = valid(units, energy.shape[2])[:, None, :, None]
    columns = energy.float() * rows
    if per_head:
        return columns, real
    return columns.transpose(1, 2).flatten(2).unsqueeze(1), real.flatten(1).unsqueeze(1)


def _dar_layer(
    source: Tensor, source_real: Tensor, reference: Tensor, reference_real: Tensor, unit: bool
) -> Tensor:
    """Equations 9-11 for one layer, summed over sentences (and averaged over columns)."""
    source_unit, reference_unit = (F.normalize(c, dim=2, eps=1e-6) for c in (source, reference))
    rebuilt = []
    for unit_columns, values, real in (
        (source_unit, source, source_real),
        (reference_unit, reference, reference_real),
    ):
        cosine = unit_columns.transpose(2, 3) @ reference_unit
        weights = cosine.masked_fill(~real.unsqueeze(3), HIDDEN).softmax(2)
        rebuilt.append((unit_columns if unit else values) @ weights)
    distance = _norm(rebuilt[0] - rebuilt[1], dim=2) * reference_real
    columns = reference_real.flatten(1).sum(1).clamp(min=1)
    return (distance.flatten(1).sum(1) / columns).sum()


def _norm(x: Tensor, dim: int) -> Tensor:
    """Euclidean length, with gradient zero (not NaN) where it is zero."""
    return torch.linalg.vector_norm(x, dim=dim)
