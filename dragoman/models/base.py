"""What a model is to the rest of Dragoman: it hears, it drafts, it remembers what was said.

A `Model` is loaded once and shared; it opens `Stream`s, one per speaker. Its operations take a
batch of streams, so that a server can serve many speakers in one pass; one stream is a batch of
one. Models know nothing of policies: they draft a continuation, somebody else decides how much
of it is said.

`hear` does all the encoding; a stream's properties are plain values and cost nothing to read.
Times are milliseconds of the stream, whatever the frames of a net.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import Samples
from dragoman.audio.ear import SPEECH, Voice


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
    # [tokens, frames] of sound that was heard; frames that only collect attention are left out.
    attention: NDArray[np.float32] | None = None
    frame_ms: float = 0.0  # duration of one of them
    start_ms: float = 0.0  # where in the stream the first begins; all that is known without them

    @property
    def text(self) -> str:
        """The whole draft, unfinished last word included."""
        return "".join(self.words) + self.tail

    @property
    def probability(self) -> float:
        """Mean token probability; 1 for an empty draft, which claims nothing."""
        return float(np.mean(np.exp(self.log_probs))) if self.log_probs else 1.0

    def looks(self, begin: int, end: int) -> list[float]:
        """The moments of the stream that the tokens `begin` to `end` attend to most, in ms."""
        if self.attention is None or not self.attention.shape[1]:
            return [self.start_ms] * (end - begin)
        peaks = self.attention[begin:end].argmax(axis=1)
        return [self.start_ms + int(peak) * self.frame_ms for peak in peaks]

    def whole(self, tokens: int) -> int:
        """The most tokens, at most `tokens`, that end on a whole word."""
        words = self.words_within(tokens)
        return self.ends[words - 1] if words else 0

    def words_within(self, tokens: int) -> int:
        """How many words are whole within the first `tokens` tokens."""
        return bisect_right(self.ends, tokens)

    def word_probabilities(self, words: int) -> tuple[float, ...]:
        """The mean token probability of each of the first words; the tail counts as one."""
        ends = (*self.ends, len(self.tokens))[:words]
        sure = list(map(math.exp, self.log_probs))
        spans = zip((0, *ends), ends, strict=False)
        return tuple(
            sum(sure[begin:end]) / (end - begin) if begin < end else 1.0 for begin, end in spans
        )

    def after(self, tokens: int) -> Draft:
        """What is left of the draft once its first `tokens` tokens have been committed."""
        words = self.words_within(tokens)  # one that had begun before may be whole with none
        if not (tokens or words):
            return self
        return Draft(  # not by `replace`, which takes five times as long, for every stream and step
            self.tokens[tokens:],
            self.words[words:],
            tuple([end - tokens for end in self.ends[words:]]),
            self.tail,
            self.log_probs[tokens:],
            self.ended,
            self.silence,
            None if self.attention is None else self.attention[tokens:],
            self.frame_ms,
            self.start_ms,
        )


@dataclass(frozen=True, slots=True)
class Ask:
    """What the interpreter wants of a draft; `None` means no limit."""

    max_words: int | None = None
    max_tokens: int | None = None
    final: bool = False  # nothing more will be heard: finish the sentence
    avoid_end: bool = False  # where the model would end, take the next best token instead
    hasty: bool = False  # time is short: one beam will do


@dataclass(frozen=True, slots=True)
class Sound:
    """The next piece of sound for a stream, and what it is for."""

    samples: Samples  # 16 kHz mono
    voice: Voice = SPEECH
    last: bool = False  # the source ends with it
    closing: bool = False  # the utterance ends with it: nothing is left for a later piece
    look: bool = True  # a count or a draft is wanted after it; else the encoding may wait


class BatchError(Exception):
    """Some streams of a batch failed, each for a reason of its own; the others did not."""

    def __init__(self, errors: Mapping[int, Exception]) -> None:
        super().__init__("; ".join(str(error) for error in errors.values()))
        self.errors = dict(errors)  # by place in the batch


def fail_alone(
    work: Callable[[Sequence[int]], None], members: Sequence[int]
) -> dict[int, Exception]:
    """Do work for a whole batch; if that fails, for each member alone. Who failed, and why.

    The work may be done twice for the same member.
    """
    if not members:
        return {}
    try:
        work(members)
        return {}
    except Exception as error:
        if len(members) == 1:
            return {members[0]: error}
    return each_alone(lambda one: work([one]), members)


def each_alone(work: Callable[[int], None], members: Iterable[int]) -> dict[int, Exception]:
    """Do work for each member of a batch. Who failed, and why."""
    errors: dict[int, Exception] = {}
    for one in members:
        try:
            work(one)
        except Exception as error:
            errors[one] = error
    return errors


class Stream(Protocol):
    """One speaker being heard: buffers and caches, bounded however long the talk.

    It changes by its model's `hear`, `draft` and `commit` only.
    """

    @property
    def heard_ms(self) -> float:
        """Audio heard since the stream was opened."""

    @property
    def words_heard(self) -> int:
        """Source words heard, for models with `CTC` or `TRANSCRIPT`; else 0."""

    @property
    def ends_heard(self) -> int:
        """Source words whose end was heard, for models with `Feature.BOUNDARIES`; else 0."""

    @property
    def language(self) -> str | None:
        """The spoken language, asked for or detected; None while it is unknown, and once it was
        found to be another."""

    @property
    def transcript(self) -> tuple[str, ...]:
        """Source words, with their spacing, that became final since the last `hear` began.

        A stream that knows when each of them was heard has `transcript_ms` as well; one that
        translates by way of another language, in which they then are, tells it by `through`.
        """


class Model(Protocol):
    """Loaded once, immutable, shared by all its streams."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> frozenset[Feature]: ...

    @property
    def hears(self) -> tuple[str, ...]:
        """Codes of the languages that it understands; empty where that is unknown."""

    @property
    def speaks(self) -> tuple[str, ...]:
        """Codes of the languages that it can translate into; empty where that is unknown."""

    def open(self, source: str | None, target: str, *, transcript: bool = False) -> Stream:
        """Start to listen. `source` is a language code, or None to detect it.

        `transcript`: write down the source too, where that costs extra.
        Raises DragomanError for a language that the model does not know.
        """

    def hear(self, streams: Sequence[Stream], sounds: Sequence[Sound]) -> None:
        """Give each stream its next sound, and encode what a draft will look at.

        Raises BatchError if that fails for some of the streams; the others have heard.
        """

    def draft(self, streams: Sequence[Stream], asks: Sequence[Ask]) -> list[Draft]:
        """Continue, for each stream, what was committed so far."""

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        """The first `tokens` tokens of `draft` are final. `closed`: the utterance is over."""
