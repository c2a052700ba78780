"""What a model is to the rest of Dragoman: it hears, it drafts, it remembers what was said.

A `Model` is loaded once and shared; it opens `Stream`s, one per speaker. Its operations take a
batch of streams, so that a server can serve many speakers in one pass; one stream is a batch of
one. Models know nothing of policies: they draft a continuation, somebody else decides how much
of it is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Feature(StrEnum):
    """What a model may offer beyond a draft, and a policy or a detector may need."""

    ATTENTION = "attention over the source"
    SILENCE = "a silence probability"
    CTC = "a CTC head that counts source words"
    BOUNDARIES = "a head that fires at word ends"
    TRANSCRIPT = "a transcript of the source"
    DECISIONS = "its own read/write decisions"


@dataclass(frozen=True, slots=True)
class Draft:
    """A continuation of what was said, as the model would finish it now.

    `words` carry their spacing as it is to be printed (" Hallo", "世界"); the first one includes
    what was committed of an unfinished word before. `ends[i]` is the number of draft tokens after
    which `words[i]` is whole. Text after the last whole word stands in `tail`.
    """

    tokens: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    ends: tuple[int, ...] = ()
    tail: str = ""
    log_probs: tuple[float, ...] = ()  # one per token
    ended: bool = False  # the model believes the sentence is complete
    silence: float | None = None  # probability that nothing was spoken
    attention: NDArray[np.float32] | None = None  # [tokens, frames], frames = audio heard only
    frame_ms: float = 0.0  # duration of one attention frame

    @property
    def text(self) -> str:
        """The whole draft, unfinished last word included."""
        return "".join(self.words) + self.tail

    @property
    def probability(self) -> float:
        """Mean token probability; 1 for an empty draft, which claims nothing."""
        return float(np.mean(np.exp(self.log_probs))) if self.log_probs else 1.0

    def whole(self, tokens: int) -> int:
        """The most tokens, at most `tokens`, that end on a whole word."""
        return max((end for end in self.ends if end <= tokens), default=0)

    def words_within(self, tokens: int) -> int:
        """How many words are whole within the first `tokens` tokens."""
        return sum(end <= tokens for end in self.ends)

    def after(self, tokens: int) -> Draft:
        """What is left of the draft once its first `tokens` tokens have been committed."""
        words = self.words_within(tokens)
        return replace(
            self,
            tokens=self.tokens[tokens:],
            words=self.words[words:],
            ends=tuple(end - tokens for end in self.ends[words:]),
            log_probs=self.log_probs[tokens:],
            attention=None if self.attention is None else self.attention[tokens:],
        )


@dataclass(frozen=True, slots=True)
class Ask:
    """What the interpreter wants of a draft; `None` means no limit."""

    max_words: int | None = None
    max_tokens: int | None = None
    final: bool = False  # nothing more will be heard: finish the sentence
    avoid_end: bool = False  # where the model would end, take the next best token instead


class Stream(Protocol):
    """One speaker being heard: buffers and caches, bounded however long the talk."""

    @property
    def heard_ms(self) -> float:
        """Audio heard since the stream was opened."""

    @property
    def pause_ms(self) -> float:
        """How long the speaker has been silent; 0 while speaking or if the model cannot tell."""

    @property
    def words_heard(self) -> int:
        """Source words heard, for models with `CTC` or `TRANSCRIPT`; else 0."""

    @property
    def ends_heard(self) -> int:
        """Source words whose end was heard, for models with `Feature.BOUNDARIES`; else 0."""


class Model(Protocol):
    """Loaded once, immutable, shared by all its streams."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> frozenset[Feature]: ...

    def open(self, source: str | None, target: str) -> Stream:
        """Start to listen. `source` is a language code, or None to detect it.

        Raises DragomanError for a language the model has not.
        """

    def hear(
        self, streams: Sequence[Stream], chunks: Sequence[NDArray[np.float32]], last: Sequence[bool]
    ) -> None:
        """Give each stream its next 16 kHz mono samples; `last` marks the end of its source."""

    def draft(self, streams: Sequence[Stream], asks: Sequence[Ask]) -> list[Draft]:
        """Continue, for each stream, what was committed so far."""

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        """The first `tokens` tokens of `draft` are final. `closed`: the utterance is over."""
