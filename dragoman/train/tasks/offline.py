"""Offline speech translation: cross entropy, and CTC on the source words (paper 001).

With source and target in one language it is speech recognition; over characters it pre-trains an
encoder. Nets with a head for word ends learn those too, where the corpus knows them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.train.data.loader import Batch
from dragoman.train.settings import Level, Share
from dragoman.train.tasks.base import Ends, Task, Terms, token_terms


@dataclass(frozen=True)
class OfflineSettings:
    label_smoothing: Share = 0.1
    ce: Level = 1.0  # weight of the translation; 0 trains an encoder alone
    ctc: Level = 0.5  # counts only where the net has a CTC head
    boundaries: Level = 0.1  # counts only where the net has a head for word ends


class Offline(Task):
    settings: OfflineSettings

    @property
    def needs_ends(self) -> Ends:
        settings = self.settings
        if not settings.boundaries or not self.has_head_for_ends:
            return "no"
        return "train" if settings.ce or settings.ctc else "all"  # alone, it is validated, too

    def forward(self, batch: Batch) -> Terms:
        settings = self.settings
        encoded = self.encode(batch)
        terms = Terms({})
        if settings.ce:
            logits = self.net.decode(batch.tokens, encoded)
            terms = token_terms(logits, batch.labels, settings.label_smoothing)
            terms.losses["ce"] = settings.ce * terms.losses["ce"]
        self.add_ctc(terms, encoded, batch, settings.ctc)
        self.add_boundaries(terms, encoded, batch, settings.boundaries)
        return terms
