"""Models for tests: one that knows its words and their times, one that drafts at random.

Both keep a diary of every draft and every commit, so that a test can recompute what a policy
should have done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.ear import Voice
from dragoman.interpreter import Interpreter
from dragoman.models import Ask, Draft, Feature
from dragoman.trace import Trace

ALL_FEATURES = frozenset(Feature)
FRAME_MS = 40.0


@dataclass
class ScriptedStream:
    heard_ms: float = 0.0
    language: str | None = None
    transcript: tuple[str, ...] = ()
    words_heard: int = 0
    ends_heard: int = 0
    ended: bool = False
    committed: list[str] = field(default_factory=list)  # words
    pending: int = 0  # tokens committed of a word that is not whole yet
    drafts: list[tuple[float, Ask, Draft]] = field(default_factory=list)
    commits: list[tuple[float, int, bool]] = field(default_factory=list)


class DiaryModel:
    """Hears, keeps the diary, and leaves the drafting to a function."""

    name = "scripted"
    hears = speaks = ()

    def __init__(
        self,
        drafter: Callable[[ScriptedStream, Ask], Draft],
        features: frozenset[Feature] = ALL_FEATURES,
        ends_ms: Sequence[float] = (),
    ) -> None:
        self.features = features
        self._drafter = drafter
        self._ends_ms = ends_ms
        self.batches: list[int] = []

    def open(self, source: str | None, target: str, *, transcript: bool = False) -> ScriptedStream:
        return ScriptedStream(language=source)

    def hear(self, streams, sounds) -> None:
        for stream, sound in zip(streams, sounds, strict=True):
            stream.heard_ms += len(sound.samples) * 1000.0 / RATE
            stream.ended = sound.last
            stream.words_heard = sum(end <= stream.heard_ms for end in self._ends_ms)
            stream.ends_heard = stream.words_heard

    def draft(self, streams, asks) -> list[Draft]:
        self.batches.append(len(streams))
        drafts = [self._drafter(stream, ask) for stream, ask in zip(streams, asks, strict=True)]
        for stream, ask, draft in zip(streams, asks, drafts, strict=True):
            stream.drafts.append((stream.heard_ms, ask, draft))
        return drafts

    def commit(self, stream, draft, tokens, closed=False) -> None:
        whole = draft.words_within(tokens)
        stream.committed += draft.words[:whole]
        stream.pending = tokens - draft.whole(tokens) + (0 if whole else stream.pending)
        stream.commits.append((stream.heard_ms, tokens, closed))


def spell(words: Sequence[str], tokens_per_word: int, ended: bool, skip: int = 0) -> Draft:
    """A draft of these words; `skip` tokens of the first were committed before."""
    sizes = [tokens_per_word] * len(words)
    if sizes:
        sizes[0] -= skip
    ends = tuple(int(end) for end in np.cumsum(sizes))
    count = ends[-1] if ends else 0
    return Draft(
        tokens=tuple(range(count)),
        words=tuple(words),
        ends=ends,
        log_probs=(-0.1,) * count,
        ended=ended,
        silence=0.0,
    )


class ScriptedModel(DiaryModel):
    """Knows its words and when each is heard; `flicker` invents words beyond what was heard."""

    def __init__(
        self,
        script: Sequence[tuple[str, float]],
        *,
        flicker: Callable[[float], Sequence[str]] = lambda ms: (),
        tokens_per_word: int = 1,
        features: frozenset[Feature] = ALL_FEATURES,
    ) -> None:
        assert all(a[1] <= b[1] for a, b in pairwise(script))
        super().__init__(self._continue, features, [end for _, end in script])
        self.script = script
        self._flicker = flicker
        self._tokens_per_word = tokens_per_word

    def _continue(self, stream: ScriptedStream, ask: Ask) -> Draft:
        said = len(stream.committed)
        certain = [
            " " + word for word, end in self.script if stream.ended or end <= stream.heard_ms
        ]
        invented = [] if ask.final else [" " + word for word in self._flicker(stream.heard_ms)]
        words = (certain + invented)[said:]
        draft = spell(words, self._tokens_per_word, True, stream.pending if words else 0)
        return replace(draft, attention=self._attention(stream, draft, said), frame_ms=FRAME_MS)

    def _attention(self, stream: ScriptedStream, draft: Draft, said: int) -> np.ndarray:
        """Every token looks at the frame in which its source word ended."""
        frames = max(1, int(stream.heard_ms / FRAME_MS))
        attention = np.full((len(draft.tokens), frames), 0.01 / frames, np.float32)
        for token in range(len(draft.tokens)):
            word = said + draft.words_within(token)
            end = self.script[word][1] if word < len(self.script) else stream.heard_ms
            attention[token, min(int(end / FRAME_MS), frames - 1)] = 0.99
        return attention


class ScriptedEar:
    """Knows when the speaker's words end: between and after them is silence."""

    def __init__(self, ends_ms: Sequence[float]) -> None:
        self._ends_ms, self._heard_ms = ends_ms, 0.0

    def hear(self, samples) -> Voice:
        self._heard_ms += len(samples) * 1000.0 / RATE
        before = max((end for end in self._ends_ms if end <= self._heard_ms), default=0.0)
        silence_ms = self._heard_ms - before
        return Voice(spoken=True, speaking=silence_ms == 0, silence_ms=silence_ms)


def chunks_of(total_ms: int, step_ms: int) -> list[Chunk]:
    """Silence of this length, cut in steps; the last one may be shorter."""
    total, step = total_ms * RATE // 1000, step_ms * RATE // 1000
    starts = range(0, total, step)
    return [
        Chunk(np.zeros(min(step, total - start), np.float32), last=start + step >= total)
        for start in starts
    ]


def sentence() -> ScriptedModel:
    """Seven words, one every 400 ms."""
    return ScriptedModel([(f"word{i}", 400.0 * (i + 1)) for i in range(7)])


def steady() -> ScriptedModel:
    """Twelve words, one every 400 ms: a model for commands that take `module:function`."""
    return ScriptedModel([(f"word{i}", 400.0 * (i + 1)) for i in range(12)])


def slow_to_load() -> ScriptedModel:
    """The same, after two seconds."""
    time.sleep(2)
    return steady()


COLOURS = {"red": "rot", "green": "grün", "small": "klein"}


def colours() -> ScriptedModel:
    """Three words, one every 400 ms, that a text net of the tests can translate."""
    return ScriptedModel([(word, 400.0 * (i + 1)) for i, word in enumerate(COLOURS)])


SCRIPT = [("the", 300.0), ("old", 700.0), ("man", 1100.0), ("sings", 1900.0), ("well", 2400.0)]
TEXT = "the old man sings well"


def interpret(model, policy, total_ms=3000, step_ms=200, **options):
    """A talk, interpreted: its trace, its updates, and the interpreter."""
    trace = Trace()
    interpreter = Interpreter(model, policy, record=trace, **options)
    updates = list(interpreter.run(chunks_of(total_ms, step_ms)))
    return trace, updates, interpreter
