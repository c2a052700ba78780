"""The loop: hear a chunk, ask the policy, draft, commit, record. Live use, evaluation and the
server all run it; they differ in the audio source, the clock and who listens to what is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import index

from dragoman.audio.chunk import RATE, Chunk, Samples
from dragoman.audio.ear import Ear, Voice, Waiting, listen, prepare
from dragoman.batch import Batch
from dragoman.clock import Clock, SimulatedClock
from dragoman.detectors import Detector, FixedStep
from dragoman.errors import DragomanError
from dragoman.models import Ask, BatchError, Draft, Feature, Model, Sound
from dragoman.models.base import fail_alone
from dragoman.own import OwnError
from dragoman.policies import Allowance, Policy, ages
from dragoman.text.again import overlap
from dragoman.trace import Hearing, Recorder, Saying, Showing
from dragoman.utterance import Utterance

PIECE = 5 * RATE  # samples heard at a time, however long the chunk
RECALLING = 2  # chunks after the first in which what was said elsewhere may still be heard of


@dataclass(frozen=True, slots=True)
class Update:
    """What one chunk of audio led to."""

    said: tuple[str, ...]  # words that became final, with their spacing
    interim: str  # what the model last thought to say next, not final
    hearing: Hearing
    lag_ms: float | None = None  # mean age of the sound that the words look at, if the model tells
    transcript: tuple[str, ...] = ()  # source words that became final, where the model tells
    transcript_lag_ms: float | None = None  # mean age of their sound, if the model tells
    language: str | None = None  # that is spoken, as far as it is known
    silence_ms: float = 0.0  # for which the speaker has said nothing
    error: Exception | None = None  # the stream could not go on; only `step` returns such updates
    probabilities: tuple[float, ...] = ()  # that the model gave to each word that was said
    closed: bool = False  # all that was heard has been said: the utterance is over
    through: str | None = None  # the language in between, of a model that translates by way of one

    @property
    def transcript_language(self) -> str | None:
        """Which language the transcript is in, as far as it is known."""
        return self.through or self.language


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
        ear: Ear | None = None,
        clock: Clock | None = None,
        record: Recorder | None = None,
        utterance_pause_ms: float | None = None,
        transcript: bool = False,
    ) -> None:
        """`utterance_pause_ms`: a silence this long ends the utterance, and all of it is said.

        Silence is what `ear` takes for it; without one, all sound may be speech. `transcript`: the
        source is wanted too, of a model that can write it down.
        """
        self.model = model
        self.detector = detector or FixedStep()
        self._refuse_misfit("detector", self.detector.needs)
        self.policy = policy
        transcript |= Feature.TRANSCRIPT in self.detector.needs
        self.stream = model.open(
            source, target, transcript=transcript and Feature.TRANSCRIPT in model.features
        )
        self._ear = ear
        self._clock = clock or SimulatedClock()
        self._record = record
        self._pause_ms = utterance_pause_ms

        self._chunks = 0  # worked on so far
        self._finished = False
        self._words = 0  # heard, in all
        self._utterance = Utterance()
        self._interim = ""
        self._recalled: tuple[str, ...] = ()  # said elsewhere, of the sound that comes next
        self.hasty = False
        """The machine is behind: the model may search less."""

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
        """The source has ended and the rest was said, or the stream failed."""
        return self._finished

    @property
    def open(self) -> tuple[float, int]:
        """From which moment on another interpreter would have to hear to go on as this one would,
        and how many letters were said of the sound since then."""
        utterance = (self._utterance.start_ms, self._utterance.letters)
        window: tuple[float, int] | None = getattr(self.stream, "open", None)
        return utterance if window is None or window[0] < utterance[0] else window

    def recall(self, words: Sequence[str]) -> None:
        """Before the first chunk: of its sound these words were said elsewhere, and are not said
        again. What the model would say of it is laid beside them, to find where to go on."""
        self._recalled = tuple(words)

    def hear(self, chunk: Chunk) -> Update:
        """Take one chunk through the loop."""
        update = step([self], [chunk])[0]
        if update.error is not None:
            raise update.error
        return update

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

    def _misfit(self, question: str, wanted: str, answer: object) -> OwnError:
        return OwnError(
            f"Policy '{type(self._policy).__qualname__}' answers '{question}' with {answer!r}; "
            f"{wanted} is needed."
        )

    # The steps below are the loop's own; `step` takes them for a batch of interpreters.

    def _begin(self, chunk: Chunk) -> float:
        """When the chunk had arrived."""
        if self._finished:
            raise DragomanError("This stream has ended; open another interpreter to go on.")
        self._finished = chunk.last
        return self._clock.begin(self.stream.heard_ms + _ms(chunk), chunk.arrival)

    def _listen(
        self, chunk: Chunk, pieces: Sequence[Samples], voices: Sequence[Voice]
    ) -> tuple[list[Sound], Ask | None]:
        """The pieces of the chunk for the model, and what may be said after it, if that is known
        before the model has heard it."""
        heard_ms = self.stream.heard_ms + _ms(chunk)
        counts = not self.detector.needs
        if counts:
            self._count(heard_ms)
        paused = self._pause_ms is not None and self._utterance.paused(
            voices[-1].silence_ms, self._pause_ms, heard_ms
        )
        closing = chunk.last or chunk.closes or paused
        ask = Ask(final=True) if closing else None
        if counts and not closing:
            ask = self._allowed(heard_ms, _ms(chunk))
        sounds = [
            Sound(piece, voice, look=False) for piece, voice in zip(pieces, voices, strict=True)
        ]
        look = ask is not None or not counts
        sounds[-1] = Sound(pieces[-1], voices[-1], chunk.last, closing, look)
        return sounds, ask

    def _ask(self, chunk: Chunk, ask: Ask | None) -> Ask | None:
        """What may be said, once the model has heard the chunk."""
        if self.detector.needs:
            self._count(self.stream.heard_ms)
            ask = ask or self._allowed(self.stream.heard_ms, _ms(chunk))
        return replace(ask, hasty=True) if ask and self.hasty else ask

    def _count(self, heard_ms: float) -> None:
        self._words = max(self._words, self.detector.count(heard_ms, self.stream))

    def _allowed(self, heard_ms: float, new_ms: float) -> Ask | None:
        """What the policy allows; None: nothing, and no decoding is paid."""
        if self._recalled:
            return Ask()
        if self._utterance.over and not self._policy.go_on:
            return None
        heard = self._utterance.heard(heard_ms, new_ms, self._words)
        allowance = self._policy.allow(heard, self._utterance.said)
        if not isinstance(allowance, Allowance):
            raise self._misfit("allow", "an Allowance", allowance)
        if allowance.nothing:
            return None
        return Ask(allowance.words, allowance.tokens, avoid_end=self._policy.avoid_end)

    def _take(self, ask: Ask, draft: Draft) -> _Taken:
        """Commit what the policy agrees to: the words that are final now, and how old they are."""
        again = self._said_elsewhere(ask, draft)
        if ask.final:
            count = len(draft.tokens)
        elif again is not None:
            count = draft.ends[again - 1] if again else 0
        else:
            count = self._agreed(ask, draft)
        words = draft.words[: draft.words_within(count)]
        if ask.final and draft.tail:
            words += (draft.tail,)
        self.model.commit(self.stream, draft, count, closed=ask.final)
        if ask.final:
            self._interim = ""
            self._utterance = Utterance(self.stream.heard_ms, self._words)
        else:
            self._interim = draft.after(count).text
            self._utterance.commit(draft, count, self._policy)
        fresh = words[again or 0 :]
        sure = draft.word_probabilities(len(words))[again or 0 :]
        return _Taken(fresh, _lag(draft, count) if fresh else None, sure, ask.final)

    def _agreed(self, ask: Ask, draft: Draft) -> int:
        """The tokens of a draft that the policy commits; one of the user's own may miscount."""
        wanted = self._policy.commit(draft, self._utterance.past)
        try:
            return max(0, min(index(wanted), _most(ask, draft)))
        except TypeError:
            raise self._misfit("commit", "a whole number of tokens", wanted) from None

    def _said_elsewhere(self, ask: Ask, draft: Draft) -> int | None:
        """How many words of a draft were said elsewhere; None: nobody else has said anything.

        The model may be slower to say them than the other was, so the next drafts count, too.
        """
        if not self._recalled:
            return None
        tail = (draft.tail,) if ask.final and draft.tail else ()
        found = overlap(self._recalled, (*draft.words, *tail))
        self._recalled = self._recalled[found.known :] if self._chunks < RECALLING else ()
        if ask.final:
            self._recalled = ()
        return found.words

    def _note(self, hearing: Hearing, said: tuple[str, ...], interim_before: str) -> None:
        if self._record is not None:
            self._record.heard(hearing)
            for text in said:
                self._record.said(Saying(text, self._chunks))
            if self._interim != interim_before:
                self._record.shown(Showing(self._interim, self._chunks))
        self._chunks += 1


@dataclass(frozen=True, slots=True)
class _Taken:
    """What became of a draft."""

    words: tuple[str, ...] = ()
    lag_ms: float | None = None
    probabilities: tuple[float, ...] = ()
    closed: bool = False


class _Turn:
    """One chunk of one speaker on its way through the loop, and its share of the work."""

    def __init__(self, interpreter: Interpreter, chunk: Chunk) -> None:
        self.interpreter, self.chunk = interpreter, chunk
        self._pieces: list[Samples] = []
        self.for_ear: list[Waiting | Voice] = []
        self.voices: list[Voice] = []
        self.sounds: list[Sound] = []
        self.ask: Ask | None = None
        self.draft: Draft | None = None
        self.work_ms = 0.0
        self.error: Exception | None = None
        self._arrival_ms = 0.0
        self._taken = _Taken()
        self._transcript: tuple[str, ...] = ()  # told with a piece that was not the last
        self._transcript_ms: tuple[float, ...] = ()
        self._interim_before = interpreter._interim

    def fail(self, error: Exception) -> None:
        self.error = error
        self.interpreter._finished = True

    def begin(self) -> None:
        self._arrival_ms = self.interpreter._begin(self.chunk)
        samples = self.chunk.samples
        self._pieces = [samples[at : at + PIECE] for at in range(0, max(1, len(samples)), PIECE)]
        self.for_ear = [prepare(self.interpreter._ear, piece) for piece in self._pieces]

    def listen(self) -> None:
        self.sounds, self.ask = self.interpreter._listen(self.chunk, self._pieces, self.voices)

    def keep_transcript(self) -> None:
        """Take what the stream tells, before it hears the next piece and forgets that."""
        stream = self.interpreter.stream
        self._transcript = (*self._transcript, *stream.transcript)
        self._transcript_ms = (*self._transcript_ms, *getattr(stream, "transcript_ms", ()))

    def heard(self) -> None:
        self.ask = self.interpreter._ask(self.chunk, self.ask)

    def take(self) -> None:
        if self.ask is not None and self.draft is not None:
            self._taken = self.interpreter._take(self.ask, self.draft)

    def end(self) -> Update:
        one = self.interpreter
        self.keep_transcript()
        times = one._clock.end(self.work_ms)
        hearing = Hearing(one.stream.heard_ms, self._arrival_ms, *times)
        if self.error is None:
            one._note(hearing, self._taken.words, self._interim_before)
        return Update(
            self._taken.words,
            one._interim,
            hearing,
            self._taken.lag_ms,
            self._transcript,
            _transcript_lag(one.stream.heard_ms, self._transcript_ms),
            one.stream.language,
            self.sounds[-1].voice.silence_ms if self.sounds else 0.0,
            self.error,
            self._taken.probabilities,
            self._taken.closed,
            getattr(one.stream, "through", None),
        )


def step(interpreters: Sequence[Interpreter], chunks: Sequence[Chunk]) -> list[Update]:
    """One chunk for each of several speakers on one model, encoded and drafted as one batch.

    A speaker for whom something fails ends alone: the update tells the error. Each is charged for
    its own work, and for an equal share of the work that was done for several at once.
    """
    turns = [_Turn(one, chunk) for one, chunk in zip(interpreters, chunks, strict=True)]
    if not turns:
        return []
    model, batch = interpreters[0].model, Batch(turns, interpreters[0]._clock.timer)
    batch.each(_Turn.begin)
    batch.together(_listen, batch.going())
    batch.each(_Turn.listen)
    for piece in range(max(len(turn.sounds) for turn in turns)):
        hearing = [turn for turn in batch.going() if len(turn.sounds) > piece]
        batch.together(partial(_hear, model, piece), hearing)
    batch.each(_Turn.heard)
    batch.together(partial(_draft, model), [turn for turn in batch.going() if turn.ask is not None])
    batch.each(_Turn.take)
    return [turn.end() for turn in turns]


def _listen(turns: Sequence[_Turn]) -> None:
    """Let the ears of several speakers hear, piece by piece."""
    for piece in range(max(len(turn.for_ear) for turn in turns)):
        hearing = [turn for turn in turns if len(turn.for_ear) > piece]
        voices = listen([turn.for_ear[piece] for turn in hearing])
        for turn, voice in zip(hearing, voices, strict=True):
            turn.voices.append(voice)


def _hear(model: Model, piece: int, turns: Sequence[_Turn]) -> None:
    """Let the streams of several speakers hear one piece of their chunks."""
    if piece:
        for turn in turns:
            turn.keep_transcript()
    model.hear([turn.interpreter.stream for turn in turns], [turn.sounds[piece] for turn in turns])


def _draft(model: Model, turns: Sequence[_Turn]) -> None:
    """Draft for several speakers; should that fail, for each of them."""

    def draft(members: Sequence[int]) -> None:
        chosen = [turns[i] for i in members]
        asks = [turn.ask for turn in chosen if turn.ask is not None]
        drafts = model.draft([turn.interpreter.stream for turn in chosen], asks)
        for turn, one in zip(chosen, drafts, strict=True):
            turn.draft = one

    errors = fail_alone(draft, range(len(turns)))
    if errors:
        raise BatchError(errors)


def _ms(chunk: Chunk) -> float:
    return len(chunk.samples) * 1000.0 / RATE


def _transcript_lag(now_ms: float, moments_ms: Sequence[float]) -> float | None:
    """How long ago the words of the transcript were heard, on average; None: nobody knows."""
    return now_ms - sum(moments_ms) / len(moments_ms) if moments_ms else None


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
