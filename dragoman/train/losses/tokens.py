"""Losses on tokens: cross entropy, CTC, and learning from a teacher's probabilities."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.train.nets.base import PAD
from dragoman.train.nets.layers import valid


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Label-smoothed: the target distribution is (1 - s) one-hot + s / V. Sum over tokens.

    logits [B, U, V], targets [B, U] PAD where there is none.
    """
    return F.cross_entropy(
        logits.flatten(0, 1).float(),
        targets.flatten(),
        ignore_index=PAD,
        label_smoothing=smoothing,
        reduction="sum",
    )


def ctc(
    logits: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor, blank: int
) -> Tensor:
    """-log P(source units | states), summed over sentences.

    logits [B, S, V + 1], lengths [B], targets [B, W], target_lengths [B]. A sentence with more
    units than states has no path: it counts as zero instead of infinity.
    """
    return F.ctc_loss(
        logits.float().log_softmax(-1).transpose(0, 1),
        targets,
        lengths,
        target_lengths,
        blank=blank,
        reduction="sum",
        zero_infinity=True,
    )


def distillation(student: Tensor, teacher: Tensor, targets: Tensor) -> Tensor:
    """Online KD: -sum_v sg[p_teacher(v)] log p_student(v), summed over real tokens.

    student and teacher logits [B, U, V], both read with the same forced targets [B, U].
    """
    wanted = teacher.detach().float().softmax(-1)
    cost = -(wanted * student.float().log_softmax(-1)).sum(-1)
    return cost.masked_fill(targets == PAD, 0).sum()


def boundaries(logits: Tensor, ends: Tensor, lengths: Tensor, emphasis: float = 1.0) -> Tensor:
    """The learned pre-decision: binary cross entropy of "a word ends here", summed over states.

    logits [B, S], ends [B, S] (1 where a word ends), lengths [B]. `emphasis` weighs the rare
    positive states; the states per word make both classes count alike.
    """
    cost = F.binary_cross_entropy_with_logits(
        logits.float(),
        ends.float(),
        pos_weight=torch.tensor(emphasis, device=logits.device),
        reduction="none",
    )
    return cost.masked_fill(~valid(lengths, logits.shape[1]), 0).sum()
