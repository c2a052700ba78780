"""Joint speech-text MMA (paper 004): translation, online distillation, CAR, DAR, multitask MT."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dragoman.train.data.loader import Batch
from dragoman.train.losses.attentive import cross_attentive, decision_attentive
from dragoman.train.losses.latency import LatencyLoss
from dragoman.train.losses.multitask import JointWeights
from dragoman.train.losses.tokens import cross_entropy, distillation
from dragoman.train.nets.base import Encoded
from dragoman.train.nets.joint import JointMma
from dragoman.train.nets.mma import Aligned
from dragoman.train.settings import Share
from dragoman.train.tasks.base import Task, Terms, token_terms


@dataclass(frozen=True)
class JointSettings:
    label_smoothing: Share = 0.1
    weights: JointWeights = field(default_factory=JointWeights)
    dar_per_head: bool = False  # DAR compares heads one by one, not all with all
    dar_unit_values: bool = False  # and energies by direction alone
    latency: LatencyLoss = field(default_factory=LatencyLoss)
    text_latency: bool = True  # latency counts for the text side, too: DAL(speech, text) of eq. 13


class Joint(Task):
    net: JointMma
    settings: JointSettings
    reads_text = True

    def stage(self, step: int) -> Hashable:
        settings = self.settings
        return bool(settings.weights.at(step)["kd"]), settings.latency.counts(step)

    def forward(self, batch: Batch) -> Terms:
        if not batch.heard:
            return self.read(batch)
        net, settings = self.net, self.settings
        weights = settings.weights.at(self.step)
        speech = self.encode(batch)
        text = net.encode_text(batch.source, batch.source_lengths)
        heard = net.align(batch.tokens, speech, energies=bool(weights["dar"]))
        read = net.align_text(batch.tokens, text, energies=bool(weights["dar"]))
        # Beside a teacher the likelihood is plain, as in Tang 2021: the teacher smooths enough.
        smoothing = 0.0 if weights["kd"] else settings.label_smoothing
        terms = token_terms(heard.logits, batch.labels, smoothing)
        losses = {"st": weights["st"] * terms.losses.pop("ce")}
        if weights["kd"]:
            losses["kd"] = weights["kd"] * distillation(heard.logits, read.logits, batch.labels)
        if weights["mt"]:
            losses["mt"] = weights["mt"] * cross_entropy(
                read.logits, batch.labels, settings.label_smoothing
            )
        if weights["car"]:
            losses["car"] = weights["car"] * cross_attentive(
                speech.states, speech.lengths, text.states, text.lengths
            )
        if weights["dar"]:
            losses["dar"] = weights["dar"] * decision_attentive(
                heard.energies,
                read.energies,
                heard.counts,
                read.counts,
                batch.target_lengths,
                per_head=settings.dar_per_head,
                unit_values=settings.dar_unit_values,
            )
        if settings.latency.average or settings.latency.variance:
            losses["latency"] = self.latency(heard, speech, batch)
            if settings.text_latency:
                losses["text latency"] = self.latency(read, text, batch)
        terms.losses = losses
        return terms

    def read(self, batch: Batch) -> Terms:
        """Of a batch of text alone: translation, and its latency."""
        settings = self.settings
        text = self.net.encode_text(batch.source, batch.source_lengths)
        aligned = self.net.align_text(batch.tokens, text)
        loss = cross_entropy(aligned.logits, batch.labels, settings.label_smoothing)
        # Processes must agree on which weights have gradients: those of speech have zeros.
        idle = 0.0 * torch.stack([weights.sum() for weights in self.net.parameters()]).sum()
        losses = {"mt": settings.weights.mt * loss + idle}
        if settings.text_latency and (settings.latency.average or settings.latency.variance):
            losses["text latency"] = self.latency(aligned, text, batch)
        return Terms(losses)

    def latency(self, aligned: Aligned, source: Encoded, batch: Batch) -> Tensor:
        """Of one side, in its own states: 40 ms of speech, or a unit of text."""
        lengths = source.lengths, batch.target_lengths
        return self.settings.latency(aligned.delays, *lengths, self.step)
