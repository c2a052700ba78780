"""What was heard and said since the speaker began, or since the pause that ended what came before:
what a policy is asked about."""

from __future__ import annotations

from dragoman.models import Draft
from dragoman.policies import Heard, Policy, Said
from dragoman.text.again import count_letters


class Utterance:
    """One of a speaker's; the interpreter begins another when all of it is said."""

    def __init__(self, start_ms: float = 0.0, start_words: int = 0) -> None:
        """`start_ms`, `start_words`: sound and source words that were heard before."""
        self.start_ms = start_ms
        self._start_words = start_words
        self.said = Said()
        self.letters = 0
        """Said: the same however a text is cut into words."""
        self.over = False
        """The model ended it and the policy does not go on: no draft is asked for until it ends."""
        self.past: tuple[Draft, ...] = ()
        """The drafts that the policy compares with, newest last."""

    def heard(self, heard_ms: float, new_ms: float, words: int) -> Heard:
        """What was heard of it, by what was heard in all."""
        ms = heard_ms - self.start_ms
        return Heard(ms, min(new_ms, ms), words - self._start_words)

    def paused(self, silence_ms: float, pause_ms: float, heard_ms: float) -> bool:
        """The speaker has been silent so long, after having said something in it."""
        return pause_ms <= silence_ms < heard_ms - self.start_ms

    def commit(self, draft: Draft, tokens: int, policy: Policy) -> None:
        """The first `tokens` of a draft were said."""
        words = draft.words[: draft.words_within(tokens)]
        self.said = Said(self.said.words + len(words), self.said.tokens + tokens)
        self.letters += count_letters("".join(words))
        # Silence, of which nothing is to be said, ends nothing.
        ended = draft.ended and tokens == len(draft.tokens) and self.said.tokens > 0
        self.over = ended and not policy.go_on
        self._remember(draft, tokens, policy.memory)

    def _remember(self, draft: Draft, tokens: int, memory: int) -> None:
        """Keep `memory` drafts that begin with what was said, cut to what they say beyond it."""
        said = draft.words_within(tokens)
        kept = [old for old in self.past if old.words[:said] == draft.words[:said]]
        beyond = [old.after(old.ends[said - 1]) if said else old for old in kept]
        self.past = tuple([*beyond, draft.after(tokens)][-memory:] if memory else ())
