"""One search for the best continuation of a batch of texts, a token at a time.

With one beam it takes the likeliest token each time; with several it follows that many texts and
chooses the one whose tokens are likeliest on average. What was said before counts as tokens too: a
mean over the new ones alone would rather pad a sentence out than let it end.

A family brings a `Decoder`. One that decides for itself when to write says so with its scores
(`may_write`); a transducer, which writes by groups of the source, has a search of its own
(`exported/transducer.py`) with the same `Found` for a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import and_, eq
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

FORBIDDEN = np.float32(-1e9)
IMPOSSIBLE = -1e8  # what is less likely than this is not taken
FURTHER = 4  # tokens by which a text that is behind may still get ahead of one that has ended
NEAR = 5.0  # among tokens that are at most exp(5) times less likely, the best are soon found
SURE = 0.5  # a token that was guessed and is likelier than all others together is not doubted


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a decoder is given to continue, and how far it may go."""

    start: tuple[int, ...]  # language and task, or the beginning of a sentence
    most: int  # tokens to make at most
    said: tuple[int, ...] = ()  # what was said of this window already
    context: tuple[int, ...] = ()  # what was said before this window
    guess: tuple[int, ...] = ()  # what may come next
    sure: float = SURE  # what is the likeliest of it, and at least so likely, is not doubted
    avoid_end: bool = False  # where the text would end, take the next best token
    least: int = 0  # new tokens before which the text does not end
    final: bool = True  # the source has ended: a net that decides for itself must write
    enough: Callable[[Sequence[int]], bool] | None = None  # whether so many new tokens will do

    @property
    def known(self) -> tuple[int, ...]:
        return (*self.context, *self.start, *self.said)

    @property
    def whole(self) -> tuple[int, ...]:
        """What can be read at once."""
        return (*self.known, *self.guess)

    def within(self, positions: int) -> Prompt:
        """The same prompt for a net that has so many positions.

        What was said first is left out first, and there is room for a quarter of them in new
        tokens.
        """
        if len(self.known) + self.most <= positions:
            return self
        room = positions - len(self.start) - min(self.most, positions // 4)
        said = self.said[-room:]
        room -= len(said)
        before = self.context[1:][max(0, len(self.context) - room) :]  # its first token opens it
        context = (*self.context[:1], *before) if before else ()
        most = min(self.most, positions - len(self.start) - len(said) - len(context))
        return replace(
            self, most=most, said=said, context=context, guess=self.guess[: max(0, most - 1)]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What a decoder computed of tokens, the first of a text."""

    tokens: tuple[int, ...] = ()
    cache: dict[str, Floats] = field(default_factory=dict)  # [1, heads, tokens, head width]

    def known(self, text: Sequence[int]) -> int:
        """How many tokens of a text it has: not the last one, which has to be read."""
        same = accumulate(map(eq, self.tokens, text[:-1]), and_)
        return sum(same)


@dataclass(frozen=True, slots=True)
class Found:
    """The continuation that was found."""

    tokens: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    looks: tuple[Floats, ...] = ()  # [states] where the decoder looked when it made each token
    ended: bool = False
    silence: float | None = None  # probability that nothing is spoken in the window, if known
    past: Past | None = None  # what the decoder computed of the tokens that it read, if kept


@dataclass(frozen=True, slots=True)
class Scores:
    """What may follow some texts."""

    log_probs: Floats  # [texts, tokens]
    looks: Floats  # [texts, states]
    may_write: bool = True  # False: a net that decides for itself would rather hear more


class Decoder(Protocol):
    """Reads a batch of texts; those that continue one prompt stand together."""

    @property
    def end(self) -> int:
        """The token that ends a text."""

    def read_known(self) -> list[Scores]:
        """Read all that is known: for each prompt, what may follow it and each of its guess."""

    def read(self, tokens: Sequence[int]) -> list[Scores]:
        """Read one more token of every text: for each prompt that goes on, what may follow."""

    def drop(self, counts: Sequence[int]) -> None:
        """Forget the last tokens of each prompt's guess."""

    def follow(self, prompts: Sequence[int], texts: Sequence[Sequence[int]]) -> None:
        """Go on with some of the prompts; `texts` are the rows which their texts continue."""


def search(decoder: Decoder, prompts: Sequence[Prompt], beams: int) -> list[Found]:
    """Continue every prompt."""
    searches = [Search(prompt, decoder.end, beams) for prompt in prompts]
    dropped, parents = [], []
    for index, (one, scores) in enumerate(zip(searches, decoder.read_known(), strict=True)):
        kept, followed = one.follow_guess(scores)
        dropped.append(len(one.prompt.guess) - kept)
        parents.append([index] * followed)
    decoder.drop(dropped)
    going = searches
    while left := [index for index, one in enumerate(going) if not one.over]:
        decoder.follow(left, [parents[index] for index in left])
        going = [going[index] for index in left]
        read = decoder.read([token for one in going for token in one.tokens])
        parents, first = [], 0
        for one, scores in zip(going, read, strict=True):
            rows = len(one.tokens)
            parents.append([first + row for row in one.advance(scores)])
            first += rows
    return [one.result() for one in searches]


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

    def __init__(self, prompt: Prompt, end: int, beams: int) -> None:
        self.prompt = prompt
        self._end = end
        self._beams = beams
        self._open = [_Text()]
        self._ended: list[tuple[float, _Text]] = []  # with what they are worth, end included
        self.over = prompt.most < 1

    @property
    def tokens(self) -> list[int]:
        """The newest token of every text that is followed."""
        return [text.token for text in self._open]

    def follow_guess(self, scores: Scores) -> tuple[int, int]:
        """Take tokens as long as they match the guess, and the one after.

        Returns how many matched, and how many texts are followed now. Where there are several
        beams, the search proper begins at the first token of the guess that is not sure.
        """
        kept, followed, guess = 0, 0, self.prompt.guess
        while not self.over:
            row = slice(kept, kept + 1)
            now = Scores(scores.log_probs[row], scores.looks[row], scores.may_write)
            alone = kept < len(guess) and self._stands(now.log_probs[0], guess[kept])
            followed = len(self.advance(now, beams=1 if alone else self._beams))
            if self.over or not alone or self.tokens[0] != guess[kept]:
                break
            kept += 1
        return kept, followed

    def _stands(self, log_probs: Floats, token: int) -> bool:
        """Whether no other token is looked for beside one that was guessed."""
        if self._beams == 1:
            return True
        likely = bool(log_probs[token] >= np.log(self.prompt.sure))
        return likely and int(log_probs.argmax()) == token

    def advance(self, scores: Scores, beams: int | None = None) -> list[int]:
        """Take the next token of every text; for each text now followed, which one it continues."""
        beams = beams or self._beams
        if not scores.may_write:
            self.over = True
            return []
        texts: list[_Text] = []
        parents: list[int] = []
        for rank, (score, row, token) in enumerate(self._candidates(scores.log_probs, beams)):
            text = self._open[row]
            if token == self._end:
                if rank < beams and text.length >= self.prompt.least:
                    length = len(self.prompt.said) + text.length + 1
                    self._ended.append((score / length, text))
            elif len(texts) < beams:
                log_prob = float(scores.log_probs[row, token])
                texts.append(text.with_token(token, log_prob, scores.looks[row]))
                parents.append(row)
        self._open = texts or self._open
        self.over = not texts or texts[0].length >= self.prompt.most or self._enough(texts[0])
        self.over |= self._decided()
        return parents

    def _decided(self) -> bool:
        """Whether a text has ended that no open one will beat.

        Until as many have ended as there are beams, an open text counts as if a few more tokens of
        it were certain, since the first texts to end are often unlikely ones; from then on, it has
        to be ahead already.
        """
        if not self._ended:
            return False
        best = max(worth for worth, _ in self._ended)
        length = len(self.prompt.said) + self._open[0].length
        if len(self._ended) < self._beams:
            length += min(FURTHER, self.prompt.most - self._open[0].length) + 1  # the end counts
        return all(text.score / length <= best for text in self._open)

    def _candidates(self, log_probs: Floats, beams: int) -> list[tuple[float, int, int]]:
        """(score, text, token) of what may come next, best first."""
        found: list[tuple[float, int, int]] = []
        for row, text in enumerate(self._open):
            for token in self._next(log_probs[row], beams):
                if log_probs[row, token] > IMPOSSIBLE:
                    found.append((text.score + float(log_probs[row, token]), row, int(token)))
        found.sort(key=lambda one: -one[0])
        return found

    def _next(self, log_probs: Floats, beams: int) -> Sequence[int] | NDArray[np.int64]:
        """The likeliest tokens, best first: as many as there are beams, besides the end."""
        if beams == 1 and (best := int(log_probs.argmax())) != self._end:
            return [best]  # most searches, and much faster
        return _likeliest(log_probs, beams + 1)

    def _enough(self, text: _Text) -> bool:
        enough = self.prompt.enough
        return enough is not None and enough([step.token for step in text.unrolled()])

    def result(self) -> Found:
        """The best text; one that ended, if any did."""
        ended = bool(self._ended)
        if ended:
            _, best = max(self._ended, key=lambda one: one[0])
        else:
            best = max(self._open, key=lambda text: text.score)
        steps = best.unrolled()
        return Found(
            tuple(step.token for step in steps),
            tuple(step.log_prob for step in steps),
            tuple(step.look for step in steps if step.look is not None),
            ended,
        )


def _likeliest(log_probs: Floats, count: int) -> NDArray[np.int64]:
    """The likeliest tokens, best first; `count` of them leave enough besides the end."""
    near = np.flatnonzero(log_probs > log_probs.max() - NEAR)
    if len(near) < count:
        worst = np.partition(log_probs, -count)[-count] if count < len(log_probs) else -np.inf
        near = np.flatnonzero(log_probs >= worst)  # which of equals come first is the same anywhere
    return near[np.argsort(-log_probs[near], kind="stable")[:count]]
