"""One speaker whom an exported net hears."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE
from dragoman.models.base import Sound
from dragoman.models.drafting import Span
from dragoman.models.exported.caat_search import Hypothesis
from dragoman.models.exported.counting import Counted, Evidence, WordCounter
from dragoman.models.exported.features import FRAMES_PER_STATE, FeatureStream
from dragoman.models.exported.net import BOS, Arrays, OnnxNet
from dragoman.models.life import WindowStream
from dragoman.models.window import quietest

FRAME_MS = 10.0


@dataclass(slots=True)
class Encoded:
    """What was made of the sound of the window."""

    memory: Arrays | None = None
    states: int = 0
    kept: Arrays | None = None  # by an encoder that hears chunks
    evidence: Evidence = field(default_factory=Evidence)  # of a net that encodes all anew
    counted: Counted = field(default_factory=Counted)


@dataclass(slots=True)
class Decoded:
    """What a decoder that goes on from its own past needs for that."""

    cache: Arrays | None = None  # after what was said, less the last token
    drafted: tuple[Arrays, ...] = ()  # such caches after each token of the last draft
    survivors: tuple[Hypothesis, ...] = (Hypothesis((BOS,), 0.0, (), None),)  # a transducer's
    groups: int = 0  # of the source that it has read,
    seen: int = 0  # and how many states those are

    @property
    def past(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of its cache: texts are read together where these are the same."""
        return tuple(array.shape for array in self.cache or ())


@dataclass(slots=True, eq=False, kw_only=True)
class ExportedStream(WindowStream):
    """Bounded however long the talk: what was said and closed is forgotten."""

    net: OnnxNet
    sound: FeatureStream
    new_counter: Callable[[], WordCounter]
    counter: WordCounter = field(init=False)  # goes along with an encoder that hears chunks
    encoded: Encoded = field(default_factory=Encoded)
    decoded: Decoded = field(default_factory=Decoded)
    counted_before: Counted = field(default_factory=Counted)  # in what was forgotten
    start: int = 0  # of the window, in frames
    levels: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))  # of them

    def __post_init__(self) -> None:
        self.counter = self.new_counter()

    @property
    def heard_ms(self) -> float:
        return self.sound.samples * 1000.0 / RATE

    @property
    def start_ms(self) -> float:
        return self.start * FRAME_MS

    @property
    def span(self) -> Span:
        """The last state is left out: whatever is spoken, it collects attention."""
        return Span(self.start_ms, max(0, self.encoded.states - 1), self.net.config.state_ms)

    def take_in(self, sound: Sound) -> None:
        heard = self.sound.end
        self.sound.hear(sound.samples, sound.last)
        new = self.sound.frames[heard - self.sound.start :].mean(axis=1)
        self.levels = np.concatenate([self.levels, new])

    def quiet_ms(self) -> float:
        """The quietest moment in the part of the window that may be settled up to."""
        begin, end = (
            int((ms - self.start_ms) / FRAME_MS)
            for ms in (self.settle_after_ms, self.settle_before_ms)
        )
        return (self.start + begin) * FRAME_MS + quietest(self.levels[begin:end], FRAME_MS)

    def states_before(self, moment_ms: float) -> int:
        """How many states of the window come before a moment."""
        return max(0, int((moment_ms - self.start_ms) / self.net.config.state_ms + 1e-6))

    def encoded_anew(self, memory: Arrays, states: int, evidence: Evidence) -> None:
        """The encoder looked at the whole window, or at its first part."""
        counted = self.new_counter().hear(evidence)
        self.encoded = Encoded(memory, states, None, evidence, counted)
        self._tell()

    def encoded_more(self, memory: Arrays, states: int, kept: Arrays, evidence: Evidence) -> None:
        """The encoder heard one more chunk, and keeps what it needs for the next one."""
        chunks = self.net.config.chunks
        assert chunks is not None
        self.encoded = Encoded(
            self.net.join(self.encoded.memory, memory),
            self.encoded.states + states,
            kept,
            counted=self.counter.hear(evidence),
        )
        self.sound.forget(self.sound.start + chunks.advance)
        self._tell()

    def forget(self, until_ms: float) -> None:
        states = self.states_before(until_ms)
        if states < self.encoded.states and not self.net.config.keeps_past:
            frames = FRAMES_PER_STATE * states
            self._drop_states(states)
        else:
            frames = max(0, min(int(until_ms / FRAME_MS + 1e-6), self.sound.end) - self.start)
            self._drop_all()
        self.sound.forget(min(self.start + frames, self.sound.end) if frames else 0)
        self.start += frames
        self.levels = self.levels[frames:]

    def _drop_states(self, states: int) -> None:
        """Part with the first states; what was said after them was said of the others."""
        encoded = self.encoded
        encoded.memory = self.net.cut(encoded.memory or (), slice(states, None))
        encoded.states -= states
        if encoded.kept is None:  # all of it was encoded at once, and will be again
            dropped = self.new_counter().hear(encoded.evidence.part(slice(states)))
            self.counted_before += dropped
            encoded.counted -= dropped
            encoded.evidence = encoded.evidence.part(slice(states, None))

    def _drop_all(self) -> None:
        """Begin anew with what is heard after the moment that the window begins at."""
        self.counted_before += self.encoded.counted
        self.encoded, self.decoded = Encoded(), Decoded()
        self.counter = self.new_counter()

    def keep_trail(self, trail: Sequence[Arrays]) -> None:
        """What the decoder would go on from, for every number of tokens that may be committed."""
        self.decoded.drafted = tuple(trail)

    def committed(self, tokens: int) -> None:
        """So many tokens of the last draft were said."""
        if self.net.config.keeps_past and tokens < len(self.decoded.drafted):
            self.decoded.cache = self.decoded.drafted[tokens]
        self.decoded.drafted = self.decoded.drafted[tokens:]

    def _tell(self) -> None:
        counted = self.counted_before + self.encoded.counted
        self.words_heard, self.ends_heard = counted.words, counted.ends
