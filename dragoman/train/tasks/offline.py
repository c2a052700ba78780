"""Offline speech translation: cross-entropy, and CTC on the source words (paper 001).

With source and target in one language it is speech recognition; over characters it pre-trains an
encoder.
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.train.data.loader import Batch
from dragoman.train.tasks.base import Task, Terms, ctc_loss, smoothed_cross_entropy


@dataclass(frozen=True)
class OfflineSettings:
    label_smoothing: float = 0.1
    ctc: float = 0.5  # weight; counts only where the net has a CTC head


class Offline(Task):
    def __init__(self, net, front, settings: OfflineSettings):
        super().__init__(net, front)
        self.settings = settings

    def forward(self, batch: Batch) -> Terms:
        encoded = self.net.encode(*self.features(batch))
        logits = self.net.decode(batch.tokens, encoded)
        loss, shown = smoothed_cross_entropy(logits, batch.labels, self.settings.label_smoothing)
        losses = {"ce": loss}
        if encoded.ctc_logits is not None and self.settings.ctc:
            losses["ctc"] = self.settings.ctc * ctc_loss(
                encoded.ctc_logits, encoded.ctc_lengths, batch.source, batch.source_lengths
            )
        return Terms(losses, shown)
