"""A task: turns a batch into loss terms. The loop knows nothing else about it.

Every term is a SUM over the batch; the loop divides by the number of target units in the whole
update, over all processes and micro-batches. So two processes give the gradients of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from lightning import LightningModule
from torch import Tensor

from dragoman.train.data.front import FrontEnd
from dragoman.train.data.loader import Batch
from dragoman.train.data.vocabulary import PAD
from dragoman.train.nets.base import Net


@dataclass
class Terms:
    """Loss terms by name, already weighted, and counts that are only shown.

    `shown` holds (sum, count) pairs, e.g. accuracy as (right, units).
    """

    losses: dict[str, Tensor]
    shown: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def total(self) -> Tensor:
        return torch.stack([term.float() for term in self.losses.values()]).sum()


class Task(LightningModule):
    """A net, its front end and its losses. `forward(batch)` gives Terms."""

    def __init__(self, net: Net, front: FrontEnd | None):
        super().__init__()
        self.net, self.front = net, front

    def forward(self, batch: Batch) -> Terms:
        raise NotImplementedError

    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the net hears of a batch: augmented in training, plain in validation."""
        return self.front(batch, self.net.feature_norm.mean if self.training else None)

    def at_step(self, step: int) -> None:
        """Called before every update: schedules of loss weights live here."""


def smoothed_cross_entropy(
    logits: Tensor, labels: Tensor, smoothing: float
) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor]]]:
    """Sum over the units that are no padding; with accuracy and plain likelihood to show."""
    flat, wanted = logits.float().flatten(0, -2), labels.flatten()
    loss = F.cross_entropy(
        flat, wanted, ignore_index=PAD, reduction="sum", label_smoothing=smoothing
    )
    with torch.no_grad():
        real = wanted != PAD
        units = real.sum()
        right = ((flat.argmax(-1) == wanted) & real).sum()
        plain = F.cross_entropy(flat, wanted, ignore_index=PAD, reduction="sum")
    return loss, {"accuracy": (right, units), "nll": (plain, units)}


def ctc_loss(logits: Tensor, lengths: Tensor, labels: Tensor, label_lengths: Tensor) -> Tensor:
    """Sum over the batch; logits [B, T, units + 1] with the blank last.

    An item with more labels than states has no alignment and gives no loss.
    """
    scores = logits.float().log_softmax(-1).transpose(0, 1)
    return F.ctc_loss(
        scores,
        labels,
        lengths,
        label_lengths,
        blank=logits.shape[-1] - 1,
        reduction="sum",
        zero_infinity=True,
    )
