"""The bounded window of a stream: what was said of the sound in it, and when it is cut.

The window begins where the text that is still open begins. It is cut behind what was said, at the
end of a sentence where there is one, so that neither memory nor work grow with the talk. Where
nobody commits and the window is full, its first part is drafted for good before its sound goes:
what was drafted of it is `settled`, and waits to be said. Times are ms of the stream.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dragoman.models.base import Draft
from dragoman.models.words import Units, Words, without_stop, words_after
from dragoman.text.sentences import STOPS

REST_MS = 250.0  # how much of a word may come after the moment that the decoder looked at
ASTRAY_MS = 1000.0  # looks go back by less than this from word to word, if they are to be trusted
SMOOTH_MS = 250.0  # a moment is quiet if so much sound around it is


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much sound a window may hold, in ms."""

    long: float  # a window longer than this is cut at the end of a sentence that was said,
    too_long: float  # one longer than this, behind any word that was said,
    kept: float  # but this much sound stays
    full: float  # with more than this, the first part is drafted for good
    context: int = 0  # tokens of what was said before the window that the decoder is given


@dataclass(slots=True)
class Window:
    """The text of a window."""

    bounds: Bounds
    units: Units
    said: list[int] = field(default_factory=list)  # committed tokens of this window
    looks: list[float] = field(default_factory=list)  # the moment each of them stands for
    before: list[int] = field(default_factory=list)  # tokens of the sound before this window
    unfinished: list[int] = field(default_factory=list)  # committed tokens of a word not whole
    settled: Draft = field(default_factory=Draft)  # of sound that is gone, not yet committed
    rest: Draft = field(default_factory=Draft)  # of the last draft, not committed

    @property
    def untouched(self) -> bool:
        """Whether nothing was said or settled since the utterance began."""
        return not (self.said or self.settled.tokens or self.before)

    @property
    def whole(self) -> list[int]:
        """What was said of this window in whole words; a word may have begun before it."""
        return self.said[: max(0, len(self.said) - len(self.unfinished))]

    def words(self, tokens: Sequence[int], *, ended: bool) -> Words:
        """Tokens that follow what was committed, as words; the first may have begun before."""
        held = len(self.unfinished)
        follow = [*self.unfinished, *tokens]
        grouped = words_after(self.units.words, self.whole, follow, ended=ended)
        return replace(grouped, ends=tuple(max(0, end - held) for end in grouped.ends))

    def take(self, draft: Draft, tokens: int) -> None:
        """The first tokens of a draft became final."""
        settled = min(tokens, len(self.settled.tokens))
        self.settled = self.settled.after(settled)
        self.said += draft.tokens[settled:tokens]
        self.looks += draft.looks(settled, tokens)
        if draft.words_within(tokens):
            self.unfinished = list(draft.tokens[draft.whole(tokens) : tokens])
        else:
            self.unfinished += draft.tokens[:tokens]
        self.rest = draft.after(tokens)

    def settle(self, tokens: Sequence[int], log_probs: Sequence[float]) -> None:
        """All sound that was drafted leaves the window; what was drafted waits for commits."""
        self.settled = replace(
            self.settled,
            tokens=(*self.settled.tokens, *tokens),
            log_probs=(*self.settled.log_probs, *log_probs),
        )
        self.drop(len(self.said))
        self._remember(tokens)
        self.rest = self.settled

    def drop(self, tokens: int) -> None:
        """The first tokens that were said leave the window."""
        self._remember(self.said[:tokens])
        del self.said[:tokens], self.looks[:tokens]

    def close(self) -> None:
        """The utterance is over: nothing of it is needed any more."""
        self.said, self.looks, self.before, self.unfinished = [], [], [], []
        self.settled = self.rest = Draft()

    def forget_before(self) -> None:
        """What was said before the window is no help to the net."""
        self.before = []

    def _remember(self, tokens: Sequence[int]) -> None:
        kept = self.bounds.context
        self.before = [*self.before, *tokens][-kept:] if kept else []

    # When to cut.

    def all_said(self) -> bool:
        """Whether whole sentences were said, and nothing is left to say."""
        if self.rest.tokens or self.settled.tokens or not self.rest.ended:
            return False
        return len(self.said) > 0 and self._last_sentence() == len(self.said)

    def due(self, start_ms: float, now_ms: float) -> tuple[int, float] | None:
        """How many tokens leave the window now, and up to which moment its sound does."""
        if now_ms - start_ms <= self.bounds.long:
            return None
        tokens = self._last_sentence()
        if not tokens and now_ms - start_ms > self.bounds.too_long:
            tokens = self._old_words(now_ms - self.bounds.kept)
        if not tokens:
            return None
        left = self.rest.looks(0, len(self.rest.tokens))  # sound of which something is to be said
        kept = [*self.looks[tokens:], *left]
        return tokens, boundary(self.looks[:tokens], kept, self._last_word_look(tokens))

    def _last_word_look(self, tokens: int) -> float | None:
        """What the last word of the first tokens looks at; a full stop is no word."""
        words = without_stop(self.units, self.said[:tokens])
        return self.looks[words - 1] if words else None

    def _last_sentence(self) -> int:
        """How many of the tokens said make whole sentences."""
        for count in range(len(self.whole), 0, -1):
            if self.units.text(self.said[count - 1 : count]).rstrip().endswith(STOPS):
                return count
        return 0

    def _old_words(self, before_ms: float) -> int:
        """How many of the tokens said make words of sound that is old."""
        ends = self.units.words(self.said, ended=False).ends
        return max((end for end in ends if max(self.looks[:end]) < before_ms), default=0)


def boundary(
    dropped: Sequence[float], kept: Sequence[float], last_word: float | None = None
) -> float:
    """The moment that parts the looks of dropped words from those of kept ones most cleanly.

    Attention strays now and then, so no single look is trusted: as few looks as can be lie on the
    wrong side. Between the last word that goes and the first that stays, the cut is midway. If the
    look of the last word, `last_word`, is astray itself, that word may be anywhere up to the next.
    """
    go, stay = sorted(dropped), sorted(kept)

    def astray(moment: float) -> int:
        return len(go) - bisect_right(go, moment) + bisect_right(stay, moment)

    last = min(go, key=astray)
    following = min((look for look in kept if look > last), default=last + 2 * REST_MS)
    if last_word is not None and last_word < last - ASTRAY_MS:
        return max((last + following) / 2, following - 2 * REST_MS)
    return min((last + following) / 2, last + REST_MS)


def quietest(levels: NDArray[np.float32], frame_ms: float) -> float:
    """The quietest moment of some sound, in ms from its beginning, by the level of its frames."""
    size = max(1, int(SMOOTH_MS / frame_ms))
    if len(levels) <= size:
        return len(levels) * frame_ms / 2
    smooth = np.convolve(levels, np.ones(size), "valid")
    return (int(smooth.argmin()) + size // 2) * frame_ms
