"""Offline speech translation: cross-entropy, and CTC on the source words (paper 001).

With source and target in one language it is speech recognition; over characters it pre-trains an
encoder.
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.train.data.front import FrontEnd
from dragoman.train.data.loader import Batch
from dragoman.train.losses.tokens import ctc
from dragoman.train.nets.base import Net
from dragoman.train.tasks.base import Task, Terms, token_terms


@dataclass(frozen=True)
class OfflineSettings:
    label_smoothing: float = 0.1
    ctc: float = 0.5  # weight; counts only where the net has a CTC head


class Offline(Task):
    def __init__(self, net: Net, front: FrontEnd, settings: OfflineSettings):
        super().__init__(net, front)
        self.settings = settings

    def forward(self, batch: Batch) -> Terms:
        encoded = self.net.encode(*self.features(batch))
        logits = self.net.decode(batch.tokens, encoded)
        terms = token_terms(logits, batch.labels, self.settings.label_smoothing)
        if encoded.ctc_logits is not None and self.settings.ctc:
            terms.losses["ctc"] = self.settings.ctc * ctc(
                encoded.ctc_logits,
                encoded.ctc_lengths,
                batch.source,
                batch.source_lengths,
                self.net.blank,
            )
        return terms
