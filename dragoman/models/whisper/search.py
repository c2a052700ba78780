"""The search for the best continuation of one prompt, a token at a time.

With one beam it takes the likeliest token each time; with several it follows that many texts and
chooses the one whose tokens are likeliest on average. What was said before counts as tokens too: a
mean over the new ones alone would rather pad a sentence out than let it end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

FORBIDDEN = np.float32(-1e9)
NEAR = 5.0  # among tokens that are at most exp(5) times less likely, the best are soon found


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the decoder is told before it speaks, and how far it may go."""

    start: tuple[int, ...]  # language and task
    most: int  # tokens to make at most
    said: tuple[int, ...] = ()  # what was said of this window already
    context: tuple[int, ...] = ()  # what was said before this window
    guess: tuple[int, ...] = ()  # what may come next
    avoid_end: bool = False

    @property
    def known(self) -> tuple[int, ...]:
        return (*self.context, *self.start, *self.said)


@dataclass(frozen=True, slots=True)
class Spoken:
    """The continuation that was found."""

    silence: float  # probability that nothing is spoken in the window
    tokens: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    looks: tuple[Floats, ...] = ()  # [states] where the decoder looked when it made each token
    ended: bool = False


class Rules:
    """Which tokens may be made."""

    def __init__(
        self, words: int, *, end: int, no_speech: int, never: list[int], not_first: list[int]
    ) -> None:
        self.end = end
        self.no_speech = no_speech
        self._later = np.zeros(words, np.float32)
        self._later[never] = FORBIDDEN
        self._first = self._later.copy()
        self._first[not_first] = FORBIDDEN

    def log_probs(self, logits: Floats, *, first: bool, avoid_end: bool) -> Floats:
        """Log-probabilities `[rows, words]` among the tokens that are allowed."""
        allowed = logits + (self._first if first else self._later)
        if avoid_end:
            allowed[:, self.end] = FORBIDDEN
        allowed -= allowed.max(axis=1, keepdims=True)
        allowed -= np.log(np.exp(allowed).sum(axis=1, keepdims=True))
        return allowed

    def silence(self, logits: Floats) -> float:
        """The probability of silence, from the logits after the start of a text."""
        spread = np.exp(logits - logits.max())
        return float(spread[self.no_speech] / spread.sum())


@dataclass(frozen=True, slots=True)
class _Text:
    """One continuation, linked to the one that it continues."""

    score: float = 0.0
    length: int = 0
    token: int = -1
    log_prob: float = 0.0
    look: Floats | None = None
    before: _Text | None = None

    def with_token(self, token: int, log_prob: float, look: Floats) -> _Text:
        return _Text(self.score + log_prob, self.length + 1, token, log_prob, look, self)

    def unrolled(self) -> list[_Text]:
        texts: list[_Text] = []
        text: _Text | None = self
        while text is not None and text.before is not None:
            texts.append(text)
            text = text.before
        return texts[::-1]


class Search:
    """The search on behalf of one prompt."""

    def __init__(self, prompt: Prompt, rules: Rules, beams: int) -> None:
        self.prompt = prompt
        self._rules = rules
        self._beams = beams
        self._open = [_Text()]
        self._ended: list[tuple[float, _Text]] = []  # with what they are worth, end included
        self.over = prompt.most < 1

    @property
    def tokens(self) -> list[int]:
        """The newest token of every text that is followed."""
        return [text.token for text in self._open]

    def advance(self, logits: Floats, looks: Floats) -> list[int]:
        """Take the next token of every text; for each text now followed, which one it continues.

        `logits` are `[texts, words]`; `looks` are `[texts, states]`.
        """
        first = not self.prompt.said and self._open[0].length == 0
        log_probs = self._rules.log_probs(logits, first=first, avoid_end=self.prompt.avoid_end)
        found: list[tuple[float, int, int]] = []
        for row, text in enumerate(self._open):
            for token in _likeliest(log_probs[row], self._beams + 1):
                found.append((text.score + float(log_probs[row, token]), row, int(token)))
        found.sort(key=lambda one: -one[0])
        texts: list[_Text] = []
        parents: list[int] = []
        for rank, (score, row, token) in enumerate(found):
            if token == self._rules.end:
                if rank < self._beams:
                    text = self._open[row]
                    self._ended.append((score / (len(self.prompt.said) + text.length + 1), text))
            elif len(texts) < self._beams:
                log_prob = float(log_probs[row, token])
                texts.append(self._open[row].with_token(token, log_prob, looks[row]))
                parents.append(row)
        full = len(self._ended) >= self._beams
        self.over = full or texts[0].length >= self.prompt.most
        self._open = texts
        return parents

    def result(self, silence: float) -> Spoken:
        """The best text; one that ended, if any did."""
        ended = bool(self._ended)
        if ended:
            _, best = max(self._ended, key=lambda one: one[0])
        else:
            best = max(self._open, key=lambda text: text.score)
        steps = best.unrolled()
        return Spoken(
            silence,
            tuple(step.token for step in steps),
            tuple(step.log_prob for step in steps),
            tuple(step.look for step in steps if step.look is not None),
            ended,
        )


def _likeliest(log_probs: Floats, count: int) -> NDArray[np.int64]:
    """The likeliest tokens, best first; `count` of them leave enough besides the end."""
    near = np.flatnonzero(log_probs > log_probs.max() - NEAR)
    if len(near) < count:
        near = np.argpartition(-log_probs, min(count, len(log_probs) - 1))[:count]
    return near[np.argsort(-log_probs[near], kind="stable")[:count]]
