"""Text translation: the teacher of distillation, the second half of a cascade."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.train.data.loader import Batch
from dragoman.train.nets.base import Encoded
from dragoman.train.settings import Share
from dragoman.train.tasks.base import Task, Terms, token_terms


@dataclass(frozen=True)
class MtSettings:
    label_smoothing: Share = 0.1


class Mt(Task):
    settings: MtSettings

    def encode(self, batch: Batch) -> Encoded:
        return self.net.encode(batch.source, batch.source_lengths)

    def forward(self, batch: Batch) -> Terms:
        logits = self.net.decode(batch.tokens, self.encode(batch))
        return token_terms(logits, batch.labels, self.settings.label_smoothing)
