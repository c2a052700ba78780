"""The life of every stream, written once: sound comes in, silence is skipped, a bounded window
is encoded, a search continues what was said, words settle, the window moves on.

A family of nets supplies the rest: a `WindowStream` with its features and what its encoder made of
them, and a `WindowModel` that encodes streams and searches on their behalf.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dragoman.audio.ear import Voice
from dragoman.errors import DragomanError
from dragoman.models.base import (
    Ask,
    BatchError,
    Draft,
    Feature,
    Sound,
    Stream,
    each_alone,
    fail_alone,
)
from dragoman.models.drafting import Ending, Span, finished, nothing, prolonged
from dragoman.models.guard import trusted
from dragoman.models.search import Found
from dragoman.models.window import Window
from dragoman.text.again import count_letters

LEAD_IN_MS = 2000.0  # kept before speech sets in: an abrupt start sounds like half a sentence
PAUSE_MS = 1000.0  # silence after which there is nothing new to see
OVER_MS = 2000.0  # silence after which a sentence that may have been whole was whole
SHORTEST_MS = 200.0  # sound that is worth a look
STALL_MS = 1000.0  # of speech with nothing to say about it: the net has ended too soon


@dataclass(slots=True, eq=False)
class WindowStream(ABC):
    """One speaker. Bounded however long the talk; its fields are plain values."""

    target: str
    window: Window
    language: str | None = None  # that is spoken
    words_heard: int = 0
    ends_heard: int = 0
    transcript: tuple[str, ...] = ()
    transcript_ms: tuple[float, ...] = ()  # when each of its words was heard, of nets that know
    voice: Voice = field(default_factory=Voice)
    spoken: bool = False  # whether anybody spoke since the utterance began
    seen: tuple[float, float] | None = None  # from where to where the encoder last looked
    fresh: bool = False  # it has looked since the last draft
    mute_from: float | None = None  # since when there is nothing to say though somebody speaks

    # What a family supplies.

    @property
    @abstractmethod
    def heard_ms(self) -> float:
        """Audio heard since the stream was opened."""

    @property
    @abstractmethod
    def start_ms(self) -> float:
        """Where the window begins."""

    @property
    @abstractmethod
    def span(self) -> Span:
        """The window as frames of attention."""

    @abstractmethod
    def take_in(self, sound: Sound) -> None:
        """Make features of the next sound."""

    @abstractmethod
    def forget(self, until_ms: float) -> None:
        """Let the window begin at a moment, or at a frame shortly before."""

    # What is the same for all.

    @property
    def open(self) -> tuple[float, int] | None:
        """Where the window begins, and how many letters were said of it; None as long as something
        waits to be said of sound before it."""
        if self.window.settled.tokens:
            return None
        return self.start_ms, count_letters(self.window.units.text(self.window.whole))

    @property
    def rested(self) -> bool:
        """Whether the pause is so long that the sentence before it is over."""
        return self.voice.silence_ms > OVER_MS

    @property
    def worth_a_look(self) -> bool:
        return self.spoken and self.heard_ms - self.start_ms >= SHORTEST_MS

    @property
    def settle_after_ms(self) -> float:
        """A full window is settled up to a moment in its second half, behind all that was said."""
        middle = self.start_ms + (self.heard_ms - self.start_ms) / 2
        return min(max([middle, *self.window.looks]), self.settle_before_ms)

    @property
    def settle_before_ms(self) -> float:
        """The first part is no longer than a window may be, however much was heard at once."""
        return min(self.heard_ms, self.start_ms + self.window.bounds.full)

    def hear(self, sound: Sound) -> None:
        """Take the next sound; as long as nobody speaks, only the newest is kept."""
        self.transcript, self.transcript_ms = (), ()
        self.take_in(sound)
        self.voice = sound.voice
        self.spoken = (self.spoken or sound.voice.spoken) and not self._silent
        if not self.spoken:
            self.forget(self.heard_ms - LEAD_IN_MS)

    @property
    def _silent(self) -> bool:
        """Whether the window moved on behind the last speech, and nothing is said or drafted of it:
        asked about silence, a net makes something up."""
        if self.voice.speaking or self.heard_ms - self.voice.silence_ms > self.start_ms:
            return False
        window = self.window
        return not window.said and len(window.rest.tokens) <= len(window.settled.tokens)

    def nothing_new(self) -> bool:
        """Whether all that came since the encoder last looked was silence.

        Early in a pause it looks again all the same, so that a policy that compares drafts does not
        take one draft, seen twice, for two that agree; and once more when the pause is long, since
        the sentence is over by then.
        """
        if self.seen is None or self.seen[0] != self.start_ms:
            return False
        unseen = self.heard_ms - self.seen[1]
        enough = OVER_MS if self.rested else PAUSE_MS
        return unseen <= 0 or self.voice.silence_ms > unseen + enough

    def look(self) -> None:
        """The encoder has seen the window."""
        self.seen = (self.start_ms, self.heard_ms)
        self.fresh = True

    def drafted(self, draft: Draft) -> None:
        """What the encoder saw has been drafted. A stall lasts until something is said."""
        self.fresh = False
        mute = self.stalled or (draft.ended and not draft.tokens)
        if not (mute and self.voice.speaking):
            self.mute_from = None
        elif self.mute_from is None:
            self.mute_from = self.heard_ms

    @property
    def stalled(self) -> bool:
        """Whether somebody has spoken on for long, and the net takes the sentence for over."""
        if self.mute_from is None or not self.voice.speaking:
            return False
        return self.heard_ms - self.voice.silence_ms - self.mute_from >= STALL_MS

    def close(self) -> None:
        """The utterance is over: nothing of it is needed any more."""
        self.window.close()
        self.mute_from = None
        self.forget(self.heard_ms)
        self.spoken = self.voice.speaking

    def trim(self) -> bool:
        """Cut the window if it is long and enough was said, or if all was said before a long pause.

        Asked about the silence, a net would say "Thank you."; asked about the next sentence
        together with this one and the gap between, it is slow to hear that there is more; given
        what was said before the gap, it says that again. Returns whether the window was cut.
        """
        if self.rested and self.window.all_said():
            self.close()
            return True
        due = self.window.due(self.start_ms, self.heard_ms)
        if due is not None:
            tokens, until_ms = due
            self.window.drop(tokens)
            self.forget(until_ms)
        return due is not None


S = TypeVar("S", bound=WindowStream)


class WindowModel(ABC, Generic[S]):
    """Loaded once, shared by all its streams."""

    stream_type: type[S]
    name: str
    features: frozenset[Feature]
    late_stop = True

    # What a family supplies.

    @abstractmethod
    def encode(self, streams: Sequence[S], closing: Sequence[bool]) -> None:
        """Encode the windows of streams, except where there is `nothing_new`. `closing`: the
        utterance ends here, so that one may be encoded once more, as a whole."""

    @abstractmethod
    def speak(self, streams: Sequence[S], asks: Sequence[Ask]) -> list[Found]:
        """Continue what was said of encoded windows."""

    @abstractmethod
    def speak_part(self, stream: S) -> tuple[Found, float]:
        """The best text of the first part of a window, for good, and where that part ends."""

    # What is the same for all.

    def hear(self, streams: Sequence[Stream], sounds: Sequence[Sound]) -> None:
        own = [self._own(stream) for stream in streams]
        every = range(len(own))
        errors = each_alone(lambda i: self._take_in(own[i], sounds[i]), every)

        def encode(members: Sequence[int]) -> None:
            chosen = [own[index] for index in members]
            self.encode(chosen, [sounds[index].closing for index in members])
            for stream in chosen:
                if not stream.nothing_new():
                    stream.look()

        looking = [i for i in every if i not in errors and sounds[i].look and own[i].worth_a_look]
        errors |= fail_alone(encode, looking)
        if errors:
            raise BatchError(errors)

    def draft(self, streams: Sequence[Stream], asks: Sequence[Ask]) -> list[Draft]:
        own = [self._own(stream) for stream in streams]
        drafts = [self._without_looking(s, ask) for s, ask in zip(own, asks, strict=True)]
        todo = [index for index, draft in enumerate(drafts) if draft is None]
        if todo:
            spoken = self.speak([own[i] for i in todo], [asks[i] for i in todo])
            for index, found in zip(todo, spoken, strict=True):
                drafts[index] = draft = self._finished(own[index], found, asks[index])
                own[index].drafted(draft)
        return [draft for draft in drafts if draft is not None]

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        own = self._own(stream)
        settled = min(tokens, len(own.window.settled.tokens))
        own.window.take(draft, tokens)
        if tokens:
            own.mute_from = None
        self.committed(own, tokens - settled)
        if closed:
            own.close()
        elif own.trim():
            self.trimmed()

    def committed(self, stream: S, tokens: int) -> None:
        """A family may keep what its decoder computed of tokens that are final now."""

    def trimmed(self) -> None:
        """A family may tidy up when a window was cut."""

    def _own(self, stream: Stream) -> S:
        if not isinstance(stream, self.stream_type):
            raise DragomanError("This stream was opened by another model.")
        return stream

    def _take_in(self, stream: S, sound: Sound) -> None:
        stream.hear(sound)
        while stream.heard_ms - stream.start_ms > stream.window.bounds.full:
            self._settle(stream)

    def _settle(self, stream: S) -> None:
        """The window is full: draft its first part for good, then drop the sound of that."""
        found, end_ms = self.speak_part(stream)
        keep = trusted(stream.window.said, found)
        stream.window.settle(found.tokens[:keep], found.log_probs[:keep])
        stream.forget(end_ms)

    def _without_looking(self, stream: S, ask: Ask) -> Draft | None:
        """The draft, if no network is needed for it."""
        if not stream.worth_a_look or stream.seen is None:
            return nothing(stream.window, stream.span)
        if not ask.final and not stream.fresh and stream.window.rest.ended:
            return prolonged(stream.window.rest, stream.span)
        return None

    def _finished(self, stream: S, found: Found, ask: Ask) -> Draft:
        ending = Ending(ask.final, self.late_stop, stream.rested)
        looks = Feature.ATTENTION in self.features
        return finished(stream.window, found, stream.span, ending, looks=looks)
