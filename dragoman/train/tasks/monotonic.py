"""MMA: cross entropy with monotonic attention, and latency losses switched on later.

Heads may stop where they will at work (`net`: every few states, or where the encoder's head for
word ends fires) or where source words truly end (`oracle`, the flexible pre-decision of paper 000).
A net with learned decisions learns its head for word ends at the same time.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from dragoman.train.data.loader import Batch
from dragoman.train.losses.latency import LatencyLoss
from dragoman.train.nets.base import Encoded
from dragoman.train.nets.mma import MonotonicNet
from dragoman.train.nets.monotonic.decisions import COUNTED, Decisions, decide_at
from dragoman.train.settings import Level, Share
from dragoman.train.tasks.base import Ends, Task, Terms, token_terms


@dataclass(frozen=True)
class MonotonicSettings:
    label_smoothing: Share = 0.1
    ctc: Level = 0.0
    boundaries: Level = 0.1  # counts only where the encoder has a head for word ends
    decisions: Literal["net", "oracle"] = "net"
    # Where a word's end is noticed: in its last state, or in the first one of the next word, as
    # equation 3 of paper 000 has it.
    trigger: Literal["end", "next"] = "end"
    latency: LatencyLoss = field(default_factory=LatencyLoss)


class Monotonic(Task):
    net: MonotonicNet
    settings: MonotonicSettings

    @property
    def needs_ends(self) -> Ends:
        if self.settings.decisions == "oracle":
            return "every"
        return "train" if self.settings.boundaries and self.has_head_for_ends else "no"

    def host_decisions(self) -> str:
        return COUNTED if self.settings.decisions == "oracle" else super().host_decisions()

    def stage(self, step: int) -> Hashable:
        return self.settings.latency.counts(step)

    def forward(self, batch: Batch) -> Terms:
        settings = self.settings
        encoded = self.encode(batch)
        aligned = self.net.align(batch.tokens, encoded, self.decisions(batch, encoded))
        terms = token_terms(aligned.logits, batch.labels, settings.label_smoothing)
        latency = settings.latency(aligned.delays, encoded.lengths, batch.target_lengths, self.step)
        if settings.latency.average or settings.latency.variance:
            terms.losses["latency"] = latency
        self.add_ctc(terms, encoded, batch, settings.ctc)
        self.add_boundaries(terms, encoded, batch, settings.boundaries)
        return terms

    def decisions(self, batch: Batch, encoded: Encoded) -> Decisions | None:
        """Where heads may stop; None leaves it to the net."""
        if self.settings.decisions == "net":
            return None
        return decide_at(self.ends(batch, encoded) > 0, encoded.lengths).trimmed()
