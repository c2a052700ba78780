"""Simultaneous training with wait-k masks: fixed k or many paths, three ways to find words.

A target unit sees the source up to k words ahead of its own word (papers 000 and 001). Words are
counted by time (`fixed`), by the net's own CTC labels (`ctc`), or by the corpus' true word ends
(`oracle`). With `k` 0 every batch draws its own (multi-path, Elbayad 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from dragoman.errors import DragomanError
from dragoman.train.data.loader import Batch
from dragoman.train.losses.waitk import (
    ctc_marks,
    draw_k,
    ends_of,
    seen_adaptive,
    seen_fixed,
    target_words,
)
from dragoman.train.nets.base import Encoded
from dragoman.train.nets.layers import seen_bias
from dragoman.train.settings import Count, Level, Share, Whole
from dragoman.train.tasks.base import Ends, Task, Terms, token_terms


@dataclass(frozen=True)
class WaitKSettings:
    k: Count = 7  # 0: a k of its own for every batch, from 1 to k_max
    k_max: Whole = 13
    words: Literal["fixed", "ctc", "oracle"] = "fixed"
    trigger: Literal["end", "next"] = "end"  # a word is heard at its end, or one state later
    ratio: Whole = 7  # states per word where words are fixed: 280 ms, with states of 40 ms
    per: Literal["word", "unit"] = "word"  # what advances the mask
    label_smoothing: Share = 0.1
    ctc: Level = 0.5


class WaitK(Task):
    settings: WaitKSettings

    def __init__(self, *args: Any):
        super().__init__(*args)
        settings = self.settings
        if settings.per == "word" and self.target_word_ends is None:
            raise DragomanError(
                "Wait-k by words needs a target vocabulary that marks word ends: set "
                "vocabulary.target.suffix to true, or task_settings.per to unit."
            )
        if settings.words == "ctc" and self.source_word_ends is None:
            raise DragomanError(
                "Words are counted by CTC units that end them: set vocabulary.source.suffix to "
                "true, or task_settings.words to fixed."
            )
        if settings.words == "ctc" and getattr(self.net, "ctc", None) is None:
            raise DragomanError(
                "Words counted by CTC need a net with a CTC head (its setting ctc_layer, or ctc)."
            )

    counts_states = True

    @property
    def needs_ends(self) -> Ends:
        return "every" if self.settings.words == "oracle" else "no"

    def host_decisions(self) -> str:
        if not self.settings.k:
            return "every batch draws its own k on the host"
        return super().host_decisions()

    def forward(self, batch: Batch) -> Terms:
        encoded = self.encode(batch)
        seen = self.seen(batch, encoded)
        bias = seen_bias(seen, encoded.states.shape[1])
        logits = self.net.decode(batch.tokens, encoded, bias)
        terms = token_terms(logits, batch.labels, self.settings.label_smoothing)
        self.add_ctc(terms, encoded, batch, self.settings.ctc)
        return terms

    def seen(self, batch: Batch, encoded: Encoded) -> Tensor:
        """How many states each unit may see: [B, U]"""
        settings, lengths = self.settings, encoded.lengths
        if settings.per == "word":
            assert self.target_word_ends is not None  # __init__ asked for them
            words = target_words(batch.labels, self.target_word_ends)
        else:
            words = torch.arange(batch.labels.shape[1], device=lengths.device).expand_as(
                batch.labels
            )
        if settings.words == "fixed":
            k = self.k(lengths.max() / settings.ratio)
            return seen_fixed(k, settings.ratio, words, lengths)
        if settings.words == "oracle":
            later = int(settings.trigger == "next")
            ends = oracle_word_ends(batch.word_ends, lengths, self.net.state_ms, later)
            k = self.k((batch.word_ends >= 0).sum(1).max())
        else:
            assert encoded.ctc_logits is not None  # the net was chosen for its CTC head
            assert self.source_word_ends is not None
            labels = encoded.ctc_logits.argmax(-1)
            marks = ctc_marks(labels, lengths, self.source_word_ends)
            ends = ends_of(marks, lengths)
            k = self.k(marks.sum(1).max())
        return seen_adaptive(k, ends, words, lengths)

    def k(self, longest: Tensor | float) -> int:
        """The k of a batch whose longest source has so many words."""
        if self.settings.k:
            return self.settings.k
        # Validation needs one k for all time: the middle.
        middle = (1 + self.settings.k_max) // 2
        return draw_k(math.ceil(longest), self.settings.k_max) if self.training else middle


def oracle_word_ends(ends_ms: Tensor, lengths: Tensor, state_ms: float, later: int) -> Tensor:
    """States heard when each word ends [B, W]; all of them where there are no more words."""
    heard = torch.ceil(ends_ms / state_ms).long() + later
    everything = lengths.unsqueeze(1)
    return torch.where(ends_ms < 0, everything, torch.minimum(heard, everything))
