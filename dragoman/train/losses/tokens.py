"""Losses on tokens: cross entropy, CTC, and learning from a teacher's probabilities."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.models.exported.net import PAD
from dragoman.train.nets.layers import valid
from dragoman.train.trials import passed

Kernel = Callable[..., Any]


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


def scored(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over tokens: `cross_entropy`, the plain one without gradient, and how many are right."""
    if logits.is_cuda and (kernels := _kernels()):
        return kernels[1](logits, targets, smoothing, PAD)
    loss = cross_entropy(logits, targets, smoothing)
    with torch.no_grad():
        right = ((logits.argmax(-1) == targets) & (targets != PAD)).sum()
        plain = cross_entropy(logits, targets) if smoothing else loss.detach()
    return loss, plain, right


@cache
def _kernels() -> tuple[Kernel, Kernel] | None:
    """CTC and cross entropy as Triton kernels, once they have shown that they work here."""
    return _fused() if passed(lambda: _try(*_fused())) else None


def _fused() -> tuple[Kernel, Kernel]:
    from dragoman.train.losses.ctc_triton import ctc as fused_ctc
    from dragoman.train.losses.entropy_triton import entropy

    return fused_ctc, entropy


@torch.inference_mode(False)
@torch.enable_grad()
def _try(fused_ctc: Kernel, entropy: Kernel, device: str = "cuda") -> None:
    """A small case by kernels and without."""
    logits = torch.linspace(-9, 9, 2 * 12 * 8, device=device).cos().view(2, 12, 8).requires_grad_()
    lengths, counts = (torch.tensor(n, device=device) for n in ([12, 9], [3, 2]))
    targets = torch.tensor([[1, 1, 4], [5, 2, 0]], device=device)
    each = logits[:, :3]
    pairs = (
        (fused_ctc(logits, lengths, targets, counts, 7), _ctc(logits, lengths, targets, counts, 7)),
        (entropy(each, targets, 0.1, PAD)[0], cross_entropy(each, targets, 0.1)),
    )
    for found, wanted in pairs:
        torch.testing.assert_close(found, wanted, atol=1e-3, rtol=1e-3)
        found, wanted = (torch.autograd.grad(value, logits)[0] for value in (found, wanted))
        torch.testing.assert_close(found, wanted, atol=1e-3, rtol=1e-3)


def ctc(
    logits: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor, blank: int
) -> Tensor:
    """-log P(source units | states), summed over sentences.

    logits [B, S, V + 1], lengths [B], targets [B, W], target_lengths [B]. A sentence with more
    units than states has no path: it counts as zero instead of infinity.
    """
    if logits.is_cuda and (kernels := _kernels()):
        return kernels[0](logits, lengths, targets, target_lengths, blank)
    return _ctc(logits, lengths, targets, target_lengths, blank)


def _ctc(
    logits: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor, blank: int
) -> Tensor:
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
        pos_weight=torch.full((), emphasis, device=logits.device),
        reduction="none",
    )
    return cost.masked_fill(~valid(lengths, logits.shape[1]), 0).sum()
