"""Policies that follow a schedule: wait-k in words and (k, s, N) in frames and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.models import Draft
from dragoman.policies.base import NOTHING, Allowance, Heard, Policy, Said

FRAME_MS = 10.0


@dataclass(frozen=True)
class WaitK(Policy):
    """Stays k source words behind: the i-th word is said once k + i - 1 words were heard.

    `strict` waits for one word more, as paper 001 puts it ("wait-3 generates the first word when
    it receives the fourth"); that suits detectors which count a word before it has ended.
    """

    k: int = 3
    strict: bool = False
    # The model may believe the sentence over before the speaker does. `force_finish` goes on
    # speaking with the next chunk; without it that is the end. `avoid_eos_while_reading` takes
    # the next best token in place of the end of sentence.
    force_finish: bool = True
    avoid_eos_while_reading: bool = False

    def __post_init__(self) -> None:
        if self.k < 1:
            raise DragomanError(f"wait-k needs k of 1 or more, not {self.k}.")

    @property
    def counts_words(self) -> bool:
        return True

    @property
    def avoid_end(self) -> bool:
        return self.avoid_eos_while_reading

    @property
    def go_on(self) -> bool:
        return self.force_finish

    def allow(self, heard: Heard, said: Said) -> Allowance:
        due = heard.words - said.words - self.k + (0 if self.strict else 1)
        return Allowance(words=max(0, due))

    def commit(self, draft: Draft, past: Sequence[Draft]) -> int:
        return draft.whole(len(draft.tokens))


@dataclass(frozen=True)
class KSN(Policy):
    """(k, s, N) of paper 003, in 10 ms frames and tokens.

    Decoding step t sees g(t) = min(k + (t - 1) s, |X|) frames and writes at most N tokens:
    q(t) = q(t - 1) + w_t with 0 <= w_t <= N. What a step leaves unused is not saved up. A chunk
    that spans several steps takes them together; feed chunks of s frames for the exact schedule.
    """

    k: int = 200
    s: int = 20
    n: int = 2

    def __post_init__(self) -> None:
        if min(self.k, self.s, self.n) < 1:
            raise DragomanError(
                f"(k, s, N) are each 1 or more, not ({self.k}, {self.s}, {self.n})."
            )

    def steps(self, ms: float) -> int:
        """Decoding steps that are due once `ms` of audio was heard."""
        frames = int(ms / FRAME_MS + 1e-9)
        return 0 if frames < self.k else (frames - self.k) // self.s + 1

    def allow(self, heard: Heard, said: Said) -> Allowance:
        due = self.steps(heard.ms) - self.steps(heard.ms - heard.new_ms)
        return Allowance(tokens=due * self.n) if due > 0 else NOTHING
