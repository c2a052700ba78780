"""Offline speech translation: cross entropy, and CTC on the source words (paper 001).

With source and target in one language it is speech recognition; over characters it pre-trains an
encoder. Nets with a head for word ends learn those too, where the corpus knows them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.train.data.loader import Batch
from dragoman.train.losses.tokens import boundaries
from dragoman.train.nets.base import Encoded
from dragoman.train.nets.boundaries import boundary_targets
from dragoman.train.tasks.base import STATE_MS, Task, Terms, token_terms


@dataclass(frozen=True)
class OfflineSettings:
    label_smoothing: float = 0.1
    ce: float = 1.0  # weight of the translation; 0 trains an encoder alone
    ctc: float = 0.5  # counts only where the net has a CTC head
    boundaries: float = 0.1  # counts only where the net has a head for word ends
    boundary_emphasis: float = 6.0  # states per word end, so that both count alike


class Offline(Task):
    settings: OfflineSettings

    def forward(self, batch: Batch) -> Terms:
        settings = self.settings
        encoded = self.encode(batch)
        terms = Terms({})
        if settings.ce:
            logits = self.net.decode(batch.tokens, encoded)
            terms = token_terms(logits, batch.labels, settings.label_smoothing)
            terms.losses["ce"] = settings.ce * terms.losses["ce"]
        self.add_ctc(terms, encoded, batch, settings.ctc)
        self.add_boundaries(terms, encoded, batch)
        return terms

    def add_boundaries(self, terms: Terms, encoded: Encoded, batch: Batch) -> None:
        """The learned pre-decision: fire at the states in which words end."""
        logits, weight = encoded.boundary_logits, self.settings.boundaries
        if logits is None or not weight:
            return
        known = (batch.word_ends >= 0).any(1)  # items whose word ends nobody knows are no negatives
        ends = boundary_targets(batch.word_ends, encoded.lengths, logits.shape[1], STATE_MS)
        lengths = encoded.lengths * known
        emphasis = self.settings.boundary_emphasis
        terms.losses["boundaries"] = weight * boundaries(logits, ends, lengths, emphasis)
        fired = (logits > 0) & encoded.valid & known.unsqueeze(1)
        terms.shown["boundary_recall"] = ((fired & (ends > 0)).sum(), (ends * encoded.valid).sum())
