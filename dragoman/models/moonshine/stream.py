"""One speaker whom Moonshine hears: the sound itself, and what the encoder made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dragoman.audio.chunk import RATE, Samples
from dragoman.models.base import Sound
from dragoman.models.drafting import Span
from dragoman.models.guard import EVIDENCE
from dragoman.models.life import SHORTEST_MS, WindowStream
from dragoman.models.moonshine import tongue
from dragoman.models.moonshine.encoder import STATE, Encoded, Labels
from dragoman.models.search import Floats, Past
from dragoman.models.window import quietest

STATE_MS = 1000.0 * STATE / RATE
PER_MS = RATE / 1000.0


class EncodedWindow(Protocol):
    """A window as far as an engine encoded it, wherever that works."""

    @property
    def labels(self) -> Labels:
        """What a CTC head hears in each state."""

    @property
    def judged(self) -> Floats:
        """Whether the states are English."""

    def __len__(self) -> int:
        """How many states there are."""

    def anew(self) -> EncodedWindow:
        """Nothing of a window yet, of the same speaker."""


@dataclass(slots=True, eq=False, kw_only=True)
class MoonshineStream(WindowStream):
    """Bounded however long the talk."""

    samples: Samples = field(default_factory=lambda: np.empty(0, np.float32))  # of the window
    start: int = 0  # samples before the window
    states: EncodedWindow = field(default_factory=Encoded)  # what the encoder made of it so far
    past: Past = field(default_factory=Past)  # what the decoder computed of the last draft's text
    joined: int = 1  # states that are one for the decoder
    words_in: Callable[[Labels], int] = len  # that a CTC head hears; without one, there are none
    words_before: int = 0  # the window
    sureness: tuple[float, ...] = ()  # log-probabilities of the newest tokens that are final
    doubted: tuple[float, ...] = ()  # those of the last draft, if what is spoken was not understood
    judged: Floats = field(default_factory=tongue.no_judgement)  # the newest states before it
    expected: str | None = field(init=False)  # the language that the model was told, or its own

    def __post_init__(self) -> None:
        self.expected = self.language

    @property
    def heard_ms(self) -> float:
        return (self.start + len(self.samples)) / PER_MS

    @property
    def start_ms(self) -> float:
        return self.start / PER_MS

    @property
    def span(self) -> Span:
        states = -(-(len(self.samples) // STATE) // self.joined)
        return Span(self.start_ms, states, STATE_MS * self.joined)

    def take_in(self, sound: Sound) -> None:
        self.samples = np.concatenate([self.samples, sound.samples])

    def forget(self, until_ms: float) -> None:
        """The window begins at a whole state, and is encoded anew: to a decoder, states that were
        made with other sound before them do not look like a beginning, and it begins elsewhere."""
        gone = int(until_ms * PER_MS + 1e-6) - self.start
        gone = min(max(0, gone - gone % STATE), len(self.samples))
        self.samples = self.samples[gone:].copy()
        self.start += gone
        if gone:
            self.words_before += self.words_in(self.states.labels[: gone // STATE // self.joined])
            self.judged = self._judged(gone // STATE)
            self.states, self.past = self.states.anew(), Past()

    def quiet_ms(self) -> float:
        """The quietest moment up to which a full window may be settled."""
        begin, end = (
            int(ms * PER_MS) - self.start for ms in (self.settle_after_ms, self.settle_before_ms)
        )
        later = self.samples[begin:end]
        frames = later[: len(later) // STATE * STATE].reshape(-1, STATE)
        levels = np.log10((frames**2).mean(axis=1) + 1e-10).astype(np.float32)
        return (self.start + begin) / PER_MS + quietest(levels, STATE_MS)

    def until(self, moment_ms: float) -> Samples:
        """The sound of the window before a moment."""
        return self.samples[: int(moment_ms * PER_MS) - self.start]

    def to_encode(self, *, closing: bool) -> tuple[EncodedWindow, Samples] | None:
        """The states to go on from, and the sound to encode; None if there is nothing new.

        What is over is encoded anew, since every state may now see all of it; the silence behind it
        is left out: for the sake of that a net says more than was spoken, "Thank you." or an "and",
        and forgets the full stop.
        """
        spoken_ms = self.heard_ms - self.voice.silence_ms
        if closing and spoken_ms - self.start_ms >= SHORTEST_MS:
            return self.states.anew(), self.until(spoken_ms)
        if self.nothing_new():
            return None
        return self.states, self.unseen

    @property
    def unseen(self) -> Samples:
        """The sound of which there are no states yet."""
        return self.samples[len(self.states) * STATE :]

    def encoded(self, states: EncodedWindow) -> None:
        self.states = states
        self.words_heard = self.words_before + self.words_in(states.labels)

    def keep(self, past: Past | None) -> None:
        """The decoder has read the text so far; what is final it read anew."""
        self.past = past or Past()

    @property
    def untold(self) -> int:
        """Words that a CTC head hears behind all that the text has looked at."""
        looked_ms = max(self.window.looks, default=self.start_ms) - self.start_ms
        first = int(looked_ms / (STATE_MS * self.joined)) + 1
        return self.words_in(self.states.labels[first:])

    @property
    def foreign(self) -> bool:
        """Whether another language than the model's is spoken."""
        return tongue.foreign(self._judged(len(self.states)))

    def _judged(self, states: int) -> Floats:
        """The newest judgements, up to so many states of the window."""
        return np.concatenate([self.judged, self.states.judged[:states]])[-tongue.NEWEST :]

    def trust(self, log_probs: Sequence[float]) -> None:
        """Tokens became final, or were passed over for good."""
        self.sureness = (*self.sureness, *log_probs)[-EVIDENCE:]

    def trim(self) -> bool:
        """Of much sound that is not understood, only the newest is kept."""
        if not self.doubted or self.heard_ms - self.start_ms <= self.window.bounds.long:
            return WindowStream.trim(self)  # a class with slots is made anew: no super() here
        self.trust(self.doubted)
        self.window.drop(len(self.window.said))
        self.forget(self.heard_ms - self.window.bounds.kept)
        return True
