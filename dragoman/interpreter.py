"""The loop: hear a chunk, ask the policy, draft, commit, record. Live use, evaluation and the
server all run it; they differ in the audio source, the clock and who listens to what is said."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.audio.chunk import RATE, Chunk
from dragoman.clock import Clock, SimulatedClock
from dragoman.detectors import Detector, FixedStep
from dragoman.errors import DragomanError
from dragoman.models import Ask, Draft, Feature, Model
from dragoman.policies import Heard, Policy, Said, ages
from dragoman.trace import Hearing, Recorder, Saying, Showing


@dataclass(frozen=True, slots=True)
class Update:
    """What one chunk of audio led to."""

    said: tuple[str, ...]  # words that became final, with their spacing
    interim: str  # what the model last thought to say next, not final
    hearing: Hearing
    lag_ms: float | None = None  # mean age of the sound that the words look at, if the model tells
    transcript: tuple[str, ...] = ()  # source words that became final, where the model tells
    language: str | None = None  # that is spoken, as far as it is known
    silence_ms: float = 0.0  # for which the speaker has said nothing


class Interpreter:
    """One speaker, interpreted."""

    def __init__(
        self,
        model: Model,
        policy: Policy,
        *,
        source: str | None = None,
        target: str = "en",
        detector: Detector | None = None,
        clock: Clock | None = None,
        record: Recorder | None = None,
        utterance_pause_ms: float | None = None,
    ) -> None:
        """`utterance_pause_ms`: a silence this long ends the utterance, and all of it is said."""
        self.model = model
        self.detector = detector or FixedStep()
        self.stream = model.open(source, target)
        self._clock = clock or SimulatedClock()
        self._record = record
        self._pause_ms = utterance_pause_ms
        self._refuse_misfit("detector", self.detector.needs)
        self.policy = policy

        self._chunks = 0  # worked on so far
        self._source_ended = False
        self._silenced = False  # the model ended and the policy does not go on
        self._past: deque[Draft] = deque()
        self._words = 0  # heard, in all
        self._said = Said()  # in this utterance
        self._utterance = (0.0, 0)  # audio and words heard before it
        self._interim = ""
        self._begun = (0.0, 0.0)
        self._lag_ms: float | None = None  # of the words said last

    @property
    def policy(self) -> Policy:
        """May be exchanged while the stream runs: its knobs are the user's to turn."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._refuse_misfit("policy", policy.needs)
        self._policy = policy

    @property
    def finished(self) -> bool:
        """The source has ended and the rest was said."""
        return self._source_ended

    def hear(self, chunk: Chunk) -> Update:
        """Take one chunk through the loop."""
        return step([self], [chunk])[0]

    def run(self, chunks: Iterable[Chunk]) -> Iterator[Update]:
        """Take a whole source through the loop."""
        for chunk in chunks:
            yield self.hear(chunk)

    def _refuse_misfit(self, what: str, needs: frozenset[Feature]) -> None:
        missing = sorted(needs - self.model.features)
        if missing:
            raise DragomanError(
                f"This {what} needs {' and '.join(missing)}, which model '{self.model.name}' "
                f"does not have; choose another {what} or another model."
            )

    # The four steps below are the loop's own; `step` calls them for a batch of interpreters.

    def _begin(self, chunk: Chunk) -> None:
        if self._source_ended:
            raise DragomanError("This stream has ended; open another interpreter to go on.")
        audio_ms = self.stream.heard_ms + _ms(chunk)
        self._begun = self._clock.begin(audio_ms, chunk.arrival)

    def _ask(self, chunk: Chunk) -> Ask | None:
        """What may be said now; None: nothing, and no decoding is paid."""
        self._source_ended = chunk.last
        self._words = max(self._words, self.detector.count(self.stream))
        if self._silenced:
            return None
        if chunk.last or self._paused():
            return Ask(final=True)
        start_ms, start_words = self._utterance
        ms = self.stream.heard_ms - start_ms
        new_ms = min(_ms(chunk), ms)
        heard = Heard(ms, new_ms, self._words - start_words)
        allowance = self._policy.allow(heard, self._said)
        if allowance.nothing:
            return None
        return Ask(allowance.words, allowance.tokens, avoid_end=self._policy.avoid_end)

    def _paused(self) -> bool:
        """The speaker stopped, after having said something in this utterance."""
        if self._pause_ms is None:
            return False
        pause_ms = self.stream.pause_ms
        return self._pause_ms <= pause_ms < self.stream.heard_ms - self._utterance[0]

    def _take(self, ask: Ask, draft: Draft) -> tuple[str, ...]:
        """Commit what the policy agrees to: the words that are final now."""
        if ask.final:
            count = len(draft.tokens)
        else:
            count = min(self._policy.commit(draft, tuple(self._past)), _most(ask, draft))
        words = draft.words[: draft.words_within(count)]
        self._lag_ms = _lag(draft, count)
        if ask.final and draft.tail:
            words += (draft.tail,)
        self.model.commit(self.stream, draft, count, closed=ask.final)
        self._interim = draft.after(count).text if not ask.final else ""
        if ask.final:
            self._past.clear()
            self._said = Said()
            self._utterance = (self.stream.heard_ms, self._words)
            return words
        self._said = Said(self._said.words + len(words), self._said.tokens + count)
        self._silenced = draft.ended and count == len(draft.tokens) and not self._policy.go_on
        self._remember(draft, count)
        return words

    def _remember(self, draft: Draft, count: int) -> None:
        """Keep the drafts that the policy compares with, cut to what is not yet committed."""
        done = draft.words_within(count)
        kept = [old for old in self._past if old.words[:done] == draft.words[:done]]
        shifted = [old.after(old.ends[done - 1]) if done else old for old in kept]
        memory = self._policy.memory
        self._past = deque([*shifted, draft.after(count)][-memory:] if memory else ())

    def _end(self, said: tuple[str, ...], interim_before: str) -> Update:
        hearing = Hearing(self.stream.heard_ms, *self._begun, self._clock.end())
        if self._record is not None:
            self._record.heard(hearing)
            for text in said:
                self._record.said(Saying(text, self._chunks))
            if self._interim != interim_before:
                self._record.shown(Showing(self._interim, self._chunks))
        self._chunks += 1
        language = getattr(self.stream, "language", None)
        return Update(
            *(said, self._interim, hearing, self._lag_ms if said else None),
            language=language,
            silence_ms=self.stream.pause_ms,
        )


def _ms(chunk: Chunk) -> float:
    return len(chunk.samples) * 1000.0 / RATE


def _lag(draft: Draft, tokens: int) -> float | None:
    """How long ago the sound was, on average, that the first tokens of a draft look at."""
    if draft.attention is None or not draft.attention[:tokens].size:
        return None
    return float(ages(draft.attention[:tokens], draft.frame_ms).mean())


def _most(ask: Ask, draft: Draft) -> int:
    """The tokens of a draft that an ask allows, should the model have drafted more."""
    most = len(draft.tokens)
    if ask.max_tokens is not None:
        most = min(most, ask.max_tokens)
    if ask.max_words is not None and ask.max_words < len(draft.ends):
        most = min(most, draft.ends[ask.max_words - 1])
    return most


def step(interpreters: Sequence[Interpreter], chunks: Sequence[Chunk]) -> list[Update]:
    """One chunk for each of several speakers on one model, drafted as one batch."""
    model = interpreters[0].model
    for interpreter, chunk in zip(interpreters, chunks, strict=True):
        interpreter._begin(chunk)
    model.hear(
        [interpreter.stream for interpreter in interpreters],
        [chunk.samples for chunk in chunks],
        [chunk.last for chunk in chunks],
    )
    asks = [i._ask(chunk) for i, chunk in zip(interpreters, chunks, strict=True)]
    speaking = [(i, ask) for i, ask in zip(interpreters, asks, strict=True) if ask is not None]
    interims = [i._interim for i in interpreters]
    said: dict[int, tuple[str, ...]] = {}
    if speaking:
        drafts = model.draft([i.stream for i, _ in speaking], [ask for _, ask in speaking])
        for (interpreter, ask), draft in zip(speaking, drafts, strict=True):
            said[id(interpreter)] = interpreter._take(ask, draft)
    return [
        i._end(said.get(id(i), ()), before)
        for i, before in zip(interpreters, interims, strict=True)
    ]
