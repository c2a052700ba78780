"""What a policy is: two small pure questions.

How much may I say now? (`allow`: nothing, so that no decoding is paid; at most so many words or
tokens; or as much as I like.) And how much of this draft do I commit? (`commit`.) Policies are
frozen dataclasses: their fields are the knobs, and a stream changes them by taking another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.models import Draft, Feature


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard so far, in this utterance."""

    ms: float  # audio heard
    new_ms: float  # of it, audio heard in the last chunk
    words: int  # as the detector counts them


@dataclass(frozen=True, slots=True)
class Said:
    """How much was said so far, in this utterance."""

    words: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much may be said now; `None` means no limit."""

    words: int | None = None
    tokens: int | None = None

    @property
    def nothing(self) -> bool:
        return any(most is not None and most <= 0 for most in (self.words, self.tokens))


NOTHING = Allowance(words=0)
ANYTHING = Allowance()


@dataclass(frozen=True)
class Policy:
    """The base: says all of every draft. Each policy overrides one question or both."""

    @property
    def needs(self) -> frozenset[Feature]:
        """What the model must offer; the interpreter refuses the policy otherwise."""
        return frozenset()

    @property
    def counts_words(self) -> bool:
        """Does it ask how many words were heard, which a detector counts?"""
        return False

    @property
    def avoid_end(self) -> bool:
        """Where the model would end before the source does: take the next best token instead?"""
        return False

    @property
    def go_on(self) -> bool:
        """Speak on after the model believed the sentence over although the speaker went on?"""
        return True

    @property
    def memory(self) -> int:
        """How many earlier drafts `commit` wants to see."""
        return 0

    def allow(self, heard: Heard, said: Said) -> Allowance:
        """How much may be said now, before a draft is paid for."""
        return ANYTHING

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        """How many tokens of the draft become final.

        `past` holds up to `memory` earlier drafts, newest last, each cut to what it said beyond
        the words that are committed by now.
        """
        return len(draft.tokens)
