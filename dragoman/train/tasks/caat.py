"""CAAT: the likelihood of the transducer, its expected latency, cross entropy on all the source."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dragoman.models.exported.net import BOS
from dragoman.train.data.loader import Batch
from dragoman.train.losses.transducer import arc_scores, transducer
from dragoman.train.nets.caat import BLANK, Caat
from dragoman.train.settings import Level, Share, Whole
from dragoman.train.tasks.base import Task, Terms, token_terms


@dataclass(frozen=True)
class CaatSettings:
    latency: Level = 1.0
    ce: Level = 1.0
    label_smoothing: Share = 0.1
    rows: Whole = 6000  # cells of the lattice that meet the vocabulary at a time


class CaatTask(Task):
    net: Caat
    settings: CaatSettings

    def forward(self, batch: Batch) -> Terms:
        settings, labels = self.settings, batch.labels
        encoded = self.encode(batch)
        first = torch.full_like(labels[:, :1], BOS)
        lattice = self.net.lattice(torch.cat([first, labels], dim=1), encoded)
        arcs = arc_scores(lattice.hidden, self.net.output, labels, BLANK, settings.rows)
        likelihood, lag = transducer(*arcs, lattice.groups, batch.target_lengths)
        whole = self.net.output(lattice.whole[:, :-1])
        terms = token_terms(whole, labels, settings.label_smoothing)
        terms.losses["ce"] = settings.ce * terms.losses["ce"]
        terms.losses["transducer"] = -likelihood.sum()
        terms.losses["latency"] = settings.latency * lag.sum()
        return terms
