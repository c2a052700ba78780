"""A task: turns a batch into loss terms. The loop knows nothing else about it.

Every term is a SUM over the batch; the loop divides by the number of target units in the whole
update, over all processes and micro-batches. So two processes give the gradients of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from lightning import LightningModule
from torch import Tensor

from dragoman.models.exported.net import PAD
from dragoman.train.data.front import FrontEnd
from dragoman.train.data.loader import Batch
from dragoman.train.losses.tokens import boundaries, ctc, scored
from dragoman.train.nets.base import Encoded, FeatureNorm, Listening, Net
from dragoman.train.nets.boundaries import BoundaryHead, boundary_targets
from dragoman.train.recipe import Augment

# Which data must know where their words end: none; what is learned from, if only some of it; what
# is validated on, too; every single item of both.
Ends = Literal["no", "train", "all", "every"]
STATES_PER_WORD = 6.0  # about so many: a word's end weighs as much as all the states before it


@dataclass
class Terms:
    """Loss terms by name, already weighted, and counts that are only shown.

    `shown` holds (sum, count) pairs, e.g. accuracy as (right, units).
    """

    losses: dict[str, Tensor]
    shown: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def detached(self) -> Terms:
        """The same numbers, without the way to their gradients."""
        losses = {name: term.detach() for name, term in self.losses.items()}
        shown = {name: (top.detach(), below) for name, (top, below) in self.shown.items()}
        return Terms(losses, shown)

    @property
    def total(self) -> Tensor:
        return torch.stack([term.float() for term in self.losses.values()]).sum()


@dataclass(frozen=True)
class Words:
    """Which units end a word: [source units + 1] (blank ends none) and [target units].

    None where the vocabulary marks beginnings: then an end shows only with the next word.
    """

    source: Tensor | None = None
    target: Tensor | None = None


class Task(LightningModule, ABC):
    """A net, its front end and its losses. `forward(batch)` returns Terms."""

    # Which units end words; None where the vocabularies do not tell.
    source_word_ends: Tensor | None
    target_word_ends: Tensor | None

    def __init__(self, net: Net, front: FrontEnd | None, settings: Any, words: Words):
        super().__init__()
        self.net, self.front, self.settings = net, front, settings
        self.step = 0
        self.frozen: tuple[str, ...] = ()
        self.register_buffer("source_word_ends", words.source, persistent=False)
        self.register_buffer("target_word_ends", words.target, persistent=False)

    @abstractmethod
    def forward(self, batch: Batch) -> Terms:
        """The losses of a batch."""

    @property
    def needs_ends(self) -> Ends:
        """Which data must know where their words end."""
        return "no"

    def host_decisions(self) -> str:
        """What of a step is decided outside the device, so that no graph of it can be captured."""
        front = self.front
        if self.compresses:
            return "CTC compression makes as many states as the data have runs of labels"
        if front is not None and front.pitch is not None:
            return "features of pitch are computed with numbers that the host reads"
        return self.net.host_decisions

    @property
    def compresses(self) -> bool:
        """Whether the net's encoder, or that of a net within it, merges states by their labels."""
        configs = (getattr(part, "config", None) for part in self.net.modules())
        return any(getattr(config, "ctc_compression", False) for config in configs)

    @property
    def counts_states(self) -> bool:
        """Whether times become states, for which all of them must last equally long."""
        return self.needs_ends != "no" or self.has_head_for_ends

    def stage(self, step: int) -> Hashable:
        """Which losses count at a step: those of different stages cannot be compared."""
        return None

    @property
    def chance(self) -> torch.Generator | None:
        """What draws the augmentation; everything else is drawn by torch's own generator."""
        return None if self.front is None else self.front.random

    def seed_chance(self, number: int) -> None:
        if self.front is not None:
            self.front.seed_chance(number, self.device)

    reads_text: bool = False  # learns from batches of text alone, too

    @property
    def has_head_for_ends(self) -> bool:
        return any(isinstance(part, BoundaryHead) for part in self.net.modules())

    def freeze_parts(self, parts: tuple[str, ...]) -> None:
        """Keep parts of the net as they are: no gradients, no dropout, no new statistics."""
        self.frozen = parts
        for part in parts:
            self.net.get_submodule(part).requires_grad_(False)
        self.train(self.training)

    def train(self, mode: bool = True) -> Task:
        super().train(mode)
        for part in self.frozen:
            self.net.get_submodule(part).eval()
        return self

    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the net hears of a batch: augmented in training, plain in validation."""
        assert self.front is not None  # who reads text asks for none
        if not self.training:
            return self.front(batch, None)
        norm = feature_norm_of(self.net)
        return self.front(batch, self.front.nothing if norm is None else norm.mean)

    def encode(self, batch: Batch) -> Encoded:
        """The source of a batch, encoded."""
        if batch.states is not None and batch.state_lengths is not None:
            return self.listening.listened(batch.states, batch.state_lengths)
        return self.net.encode(*self.features(batch))

    def listen(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The states that parts of the net that are not trained make of a batch, and how many."""
        return self.listening.listen(*self.features(batch))

    @property
    def listening(self) -> Listening:
        """The net, where what it hears is kept."""
        assert isinstance(self.net, Listening)  # `check_kept` refuses others
        return self.net

    def at_step(self, step: int) -> None:
        """Called before every update: what depends on the step reads `self.step`."""
        self.step = step

    def add_ctc(self, terms: Terms, encoded: Encoded, batch: Batch, weight: float) -> None:
        """CTC on the source units, where the net has a head for it."""
        if weight and encoded.ctc_logits is not None and encoded.ctc_lengths is not None:
            terms.losses["ctc"] = weight * ctc(
                encoded.ctc_logits,
                encoded.ctc_lengths,
                batch.source,
                batch.source_lengths,
                self.net.blank,
            )

    def ends(self, batch: Batch, encoded: Encoded) -> Tensor:
        """1 at the states in which words end, or with `trigger: next` one state after: [B, S]"""
        later = int(getattr(self.settings, "trigger", "end") == "next")
        size = encoded.states.shape[1]
        return boundary_targets(batch.word_ends, encoded.lengths, size, self.net.state_ms, later)

    def add_boundaries(self, terms: Terms, encoded: Encoded, batch: Batch, weight: float) -> None:
        """The learned pre-decision: fire at the states in which words end."""
        logits = encoded.boundary_logits
        if logits is None or not weight:
            return
        known = (batch.word_ends >= 0).any(1)  # items whose word ends nobody knows are no negatives
        ends = self.ends(batch, encoded)
        lengths = encoded.lengths * known
        terms.losses["boundaries"] = weight * boundaries(logits, ends, lengths, STATES_PER_WORD)
        fired = (logits > 0) & encoded.valid & known.unsqueeze(1)
        terms.shown["boundary_recall"] = ((fired & (ends > 0)).sum(), (ends * encoded.valid).sum())


def feature_norm_of(net: Net) -> FeatureNorm | None:
    """Where a net keeps the mean and deviation of its features; None for nets that read text, or
    that hear the sound itself."""
    return next((part for part in net.modules() if isinstance(part, FeatureNorm)), None)


def front_of(net: Net, augment: Augment, seed: int) -> FrontEnd | None:
    """What makes a net's features of sound; None for nets that read text."""
    norm = feature_norm_of(net)
    if norm is None and not net.hears_sound:
        return None
    return FrontEnd(0 if norm is None else len(norm.mean), augment, seed)


def token_terms(logits: Tensor, labels: Tensor, smoothing: float) -> Terms:
    """Cross entropy as the term `ce`; accuracy and plain likelihood are shown."""
    loss, plain, right = scored(logits, labels, smoothing)
    units = (labels != PAD).sum()
    return Terms({"ce": loss}, {"accuracy": (right, units), "nll": (plain, units)})
