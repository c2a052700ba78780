"""One speaker whom an exported net hears."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE
from dragoman.models.exported.caat_search import Hypothesis
from dragoman.models.exported.counting import Counted, Evidence, WordCounter
from dragoman.models.exported.features import FRAMES_PER_STATE, FeatureStream
from dragoman.models.exported.net import BOS, Arrays
from dragoman.models.exported.pieces import Pieces

MOST_STATES = 750  # 30 s of speech that was not closed; then the older half is forgotten


@dataclass(slots=True)
class Ears:
    """What was made of the sound of this utterance."""

    memory: Arrays | None = None
    states: int = 0
    frames: int = 0  # heard when the memory was made, of all frames
    kept: Arrays | None = None  # by an encoder that hears chunks
    evidence: Evidence = field(default_factory=Evidence)  # of a net that encodes all anew
    counted: Counted = field(default_factory=Counted)


@dataclass(slots=True)
class Mouth:
    """What was said in this utterance, and what is needed to go on."""

    said: list[int] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)  # last of them, of a word not whole
    attended: list[int] = field(default_factory=list)  # the state each token looked at most
    cache: Arrays | None = None  # of a decoder that keeps its past
    drafted: tuple[Arrays, ...] = ()  # such caches after each token of the last draft
    survivors: tuple[Hypothesis, ...] = (Hypothesis((BOS,), 0.0, (), None),)  # a transducer's
    groups: int = 0  # of the source that it has read


@dataclass(slots=True, eq=False)
class OnnxStream:
    """Bounded however long the talk: what was said and closed is forgotten."""

    features: FeatureStream
    update: Callable[[OnnxStream], None]  # brings `ears` up to date
    new_counter: Callable[[], WordCounter]
    counter: WordCounter = field(init=False)  # goes along with an encoder that hears chunks
    ears: Ears = field(default_factory=Ears)
    mouth: Mouth = field(default_factory=Mouth)
    ended: bool = False
    counted_before: Counted = field(default_factory=Counted)  # in what was forgotten
    pause_ms: float = 0.0

    def __post_init__(self) -> None:
        self.counter = self.new_counter()

    @property
    def heard_ms(self) -> float:
        return self.features.samples * 1000.0 / RATE

    @property
    def words_heard(self) -> int:
        self.update(self)
        return self.counted_before.words + self.ears.counted.words

    @property
    def ends_heard(self) -> int:
        self.update(self)
        return self.counted_before.ends + self.ears.counted.ends

    @property
    def overfull(self) -> bool:
        """More speech without an end than a net should look at."""
        return self.ears.states > MOST_STATES

    def close(self) -> None:
        """The utterance is over: the next one begins with what is heard next."""
        self.counted_before += self.ears.counted
        self.features.forget(self.features.end)
        self.ears, self.mouth = Ears(), Mouth()
        self.counter = self.new_counter()

    def forget_half(self, pieces: Pieces) -> int:
        """Drop the older half of the speech, and the words whose tokens looked at it.

        Gives the number of states dropped.
        """
        states = self.ears.states - MOST_STATES // 2
        mouth, first = self.mouth, 0
        while first < len(mouth.said) and (
            mouth.attended[first] < states or not pieces.begins_word(mouth.said, first)
        ):
            first += 1
        mouth.said = mouth.said[first:]
        mouth.attended = [max(0, state - states) for state in mouth.attended[first:]]
        mouth.unfinished = mouth.unfinished if mouth.said else []
        if self.ears.kept is None:  # a net that encodes anew what is left
            self.features.forget(self.features.start + FRAMES_PER_STATE * states)
            dropped = self.new_counter().hear(self.ears.evidence.part(slice(states)))
            self.counted_before += dropped
            self.ears.counted -= dropped
            self.ears.evidence = self.ears.evidence.part(slice(states, None))
        self.ears.states -= states
        return states


def most_attended(attention: NDArray[np.float32]) -> Sequence[int]:
    """The state each token looked at most: [tokens, S] -> tokens"""
    return [int(state) for state in attention.argmax(axis=1)] if attention.size else []
