"""One talk: its words on the way out, kept for whoever resumes it; `Intake` has its sound.

A session is touched by the event loop alone. Its interpreter is touched by the scheduler's worker
alone; between them go chunks and updates.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Literal, Protocol

from dragoman.audio.chunk import Chunk, Samples
from dragoman.clock import RealClock
from dragoman.interpreter import Interpreter, Update
from dragoman.lag import Lag, lived_ms
from dragoman.serve.bell import Bell
from dragoman.serve.intake import Intake
from dragoman.serve.past import Past
from dragoman.serve.protocol import Audio, Code, Fault, Heard, Said, Summary, Transcript
from dragoman.serve.restart import LEAD_MS, MOST_MS, restart
from dragoman.serve.settings import Settings
from dragoman.setup import Setup
from dragoman.text.again import count_letters
from dragoman.text.word_times import TranscriptTimes, WordTimes

if TYPE_CHECKING:
    from dragoman.serve.speech import Narrator

_GIVEN_UP = (Code.OVERLOADED, Code.FAILED, Code.DRAINING)


class Client(Protocol):
    """The connection that a talk has at the moment."""

    def replaced(self) -> None:
        """Another one has taken over."""


class Session:
    """A talk, which may outlive the connection it began on, and the process."""

    def __init__(
        self,
        interpreter: Interpreter,
        setup: Setup,
        clock: RealClock,
        audio: Audio,
        limits: Settings,
        past: Past | None = None,
    ) -> None:
        past = past or Past()
        self.interpreter, self.setup = interpreter, setup
        self.id, self.resume_token = "", ""  # the service gives them
        self.audio, self.rate = audio, audio.counted
        self.words: list[Said] = list(past.said)
        self.transcripts: list[Transcript] = list(past.transcripts)
        self.interim = ""
        self.through: str | None = None
        """The language in which the transcript is, where that is another than is spoken."""
        self.summary: Summary | None = None
        self.fault: Fault | None = None
        self.draining = False
        self.audience = 0  # listeners in the room of this talk
        self.voice: Narrator | None = None
        self.degraded = False
        self.closings, self.flushes = 0, 0
        """How often all that was heard has been said, and how often because that was wanted."""
        self.client: Client | None = None
        self.lasting = True  # its client can come back, here or elsewhere
        self.live = True  # somebody speaks, and waits for what is said
        self.left = False  # whoever speaks will not come back once this connection is gone
        self.partings = 0  # how often a connection was lost
        self.news = Bell()
        """There is something to tell."""
        self._clock, self._limits, self._past = clock, limits, past
        self._intake = Intake(self.rate, setup.step_ms, clock, past)
        self._times, self._source_times = WordTimes(), TranscriptTimes()
        self._written = past.transcript  # words
        self._lag = Lag()
        self._kept = (past.sample, past.word, past.transcript)
        if past.recalled:
            interpreter.recall(past.recalled)

    @property
    def state(self) -> Literal["listening", "degraded", "draining"]:
        if self.draining:
            return "draining"
        return "degraded" if self.degraded else "listening"

    @property
    def finished(self) -> bool:
        return self.summary is not None or self.fault is not None

    @property
    def given_up(self) -> bool:
        """It could not go on as it was; from what its client has kept, it may begin anew."""
        return self.fault is not None and self.fault.code in _GIVEN_UP

    @property
    def stopped(self) -> bool:
        """The speaker has ended."""
        return self._intake.ended

    @property
    def sample(self) -> int:
        """The next that is wanted: all before it have arrived."""
        return self._intake.sample

    @property
    def due(self) -> float | None:
        """When the first sound that waits was spoken, on the monotonic clock; None: none waits."""
        return None if self.finished else self._intake.due

    @property
    def now_ms(self) -> float:
        """Since the talk began, on the clock on the wall."""
        return self._past.elapsed_ms + self._clock.now()

    @property
    def last_word(self) -> int:
        return self.words[-1].word if self.words else self._past.word

    @property
    def last_transcript(self) -> int:
        return self.transcripts[-1].number if self.transcripts else self._past.transcript

    @property
    def heard(self) -> Heard:
        """What has arrived, and what a client keeps of its sound should this process end."""
        return Heard(self.sample, *self._kept)

    @property
    def furthest(self) -> int:
        """The last `heard` that a client may have, of this process or of the one before: the sound
        that was heard there may be on its way still."""
        return max(self.sample, self._past.heard)

    def words_after(self, number: int) -> list[Said]:
        """Those with greater numbers, as far as they are known here."""
        return self.words[max(0, number - self.last_word + len(self.words)) :]

    def transcripts_after(self, number: int) -> list[Transcript]:
        """Those with greater numbers, as far as they are known here."""
        before = self.last_transcript - len(self.transcripts)
        return self.transcripts[max(0, number - before) :]

    def opened_by(self, token: str) -> bool:
        return hmac.compare_digest(self.resume_token.encode(), token.encode())

    def hear(self, first: int, samples: Samples) -> None:
        """Sound from its sample `first` on; what has arrived before is not heard again."""
        if self.stopped or self.finished:
            return
        self._intake.hear(first, samples)
        self.news.set()
        if self.sample > self._limits.longest * self.rate:
            self.stop()
            raise Fault(
                Code.TOO_LONG, f"A talk has at most {self._limits.longest:g} s; this one ends."
            )

    async def have_space(self) -> None:
        """Wait until more sound may come."""
        await self._intake.have_space(self._limits.fastest)

    def stop(self) -> None:
        """The speaker has ended. May be called twice."""
        if not self.stopped:
            self._intake.end()
            self.news.set()

    def flush(self) -> None:
        """What was heard so far shall be said, as after a pause."""
        if not self.stopped:
            self._intake.flush()

    def change(self, setup: Setup) -> None:
        """Another policy, which the interpreter has already, and perhaps another step."""
        self.setup = setup
        if not self.stopped:
            self._intake.cut_into(setup.step_ms)

    def next_chunk(self) -> Chunk:
        """All that waits, or as much of it as may be heard at once."""
        return self._intake.next_chunk()

    def take(self, chunk: Chunk, update: Update) -> None:
        """What a chunk led to."""
        self._write_down(update)
        now = self._before_ms + update.hearing.audio_ms
        lag_ms, end_ms = lived_ms(update), self._past.elapsed_ms + update.hearing.end_ms
        lag_ms = None if lag_ms is None else round(lag_ms, 1)
        placed = self._times.place(update.said, now, update.lag_ms)
        for word, sure in zip(placed, update.probabilities, strict=True):
            number, at_ms = self.last_word + 1, round(1000 * word.start, 1)
            self.words.append(
                Said(number, word.text, at_ms, round(end_ms, 1), lag_ms, round(sure, 3))
            )
        self.interim = update.interim
        self._lag.take(update)
        self._keep(now)
        self.closings += update.closed
        self.flushes += chunk.closes
        if chunk.last:
            lag = self._lag
            mean_ms = None if lag.aware_ms is None else round(lag.aware_ms, 1)
            self.summary = Summary(
                self.last_word, round(now, 1), mean_ms, round(lag.load, 4), update.language
            )
        self.news.set()

    def fail(self, fault: Fault | None = None) -> None:
        """The talk cannot go on here; of the interpreter's faults the log of the server tells."""
        self.fault = fault or Fault(Code.FAILED, "The interpreter could not go on with this talk.")
        self._intake.clear()
        self.news.set()

    def degrade(self, degraded: bool) -> None:
        """The machine is behind, or not any more."""
        if degraded != self.degraded:
            self.degraded = degraded
            self.news.set()

    def attach(self, client: Client) -> None:
        """A connection serves this talk from now on; the one before does not."""
        before, self.client = self.client, client
        if before is not None:
            before.replaced()

    @property
    def _before_ms(self) -> float:
        """Sound that was heard elsewhere."""
        return self._past.sample * 1000 / self.rate

    def _write_down(self, update: Update) -> None:
        """What was spoken; the client may have the first words of it already, from elsewhere."""
        now = self._before_ms + update.hearing.audio_ms
        if update.transcript:
            self.through = update.through or self.through
        for word in self._source_times.place(update.transcript, now, update.transcript_lag_ms):
            at_ms = round(1000 * word.start, 1)
            self._written += 1
            if self._written > self.last_transcript:
                self.transcripts.append(
                    Transcript(self._written, word.text, at_ms, update.transcript_language)
                )

    def _keep(self, now_ms: float) -> None:
        """Note from where on another process would have to hear, and what was said before that.

        The interpreter rests between two steps, so it may be asked here.
        """
        open_ms, letters = self.interpreter.open
        if now_ms - self._before_ms - open_ms > MOST_MS and (first := restart(self.words, now_ms)):
            self._kept = max(self._kept, self._before(first))
            return
        word = self.last_word
        for said in reversed(self.words):
            if letters <= 0:
                break
            letters -= count_letters(said.text)
            word -= 1
        sample = min(self._past.sample + int(open_ms * self.rate / 1000), self.sample)
        if sample >= self._kept[0]:  # what a client has forgotten it cannot send again
            moved = sample != self._kept[0]
            self._kept = (sample, word, self.last_transcript if moved else self._kept[2])

    def _before(self, word: Said) -> tuple[int, int, int]:
        """The sample before which a word was not spoken, and what was said and written by then."""
        at_ms = max(0.0, word.source_ms - LEAD_MS)
        later = sum(one.source_ms >= at_ms for one in self.transcripts)
        return int(at_ms * self.rate / 1000), word.word - 1, self.last_transcript - later
