"""One speaker whom Whisper hears: the window of sound it looks at, and what was said of it.

The window begins where the text that is still open begins. It is cut behind what was said, at the
end of a sentence where there is one, so that neither memory nor work grow with the talk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dragoman.audio.chunk import RATE, Samples
from dragoman.audio.gate import SpeechGate
from dragoman.audio.vad import WINDOW_SECONDS, VadStream
from dragoman.models.base import Draft
from dragoman.models.whisper.decoder import States
from dragoman.models.whisper.mel import FRAME_MS, QUIETEST, LogMel

SECOND = int(1000 / FRAME_MS)  # in mel frames
LEAD_IN = 2 * SECOND  # kept before speech sets in: an abrupt start sounds like half a sentence
PAUSE = 1.0  # seconds of silence after which there is nothing new to see
OVER = 2.0  # seconds of silence after which a sentence that may have been whole was whole
FADING = 1.0 / (30 * SECOND)  # how fast the level of the loudest sound is forgotten, per frame
CONTEXT = 48  # tokens of what was said before the window that the decoder is told


class Ear:
    """Tells speech from other sound. Without a voice detector, all sound may be speech."""

    def __init__(self, vad: VadStream | None) -> None:
        self._vad = vad
        self._gate = SpeechGate(WINDOW_SECONDS)
        self.spoken = vad is None  # whether anybody spoke since the last `reset`

    @property
    def silence(self) -> float:
        """For how many seconds nobody has spoken."""
        return 0.0 if self._vad is None else self._gate.silence

    def hear(self, samples: Samples) -> None:
        if self._vad is not None:
            ended = self._gate.hear(self._vad.hear(samples))
            self.spoken |= self._gate.speaking or bool(ended)

    def reset(self) -> None:
        """What was spoken so far has been dealt with."""
        self.spoken = self._vad is None or self._gate.speaking


@dataclass(slots=True)
class Window:
    """What the encoder last saw, in mel frames of the stream, and what it made of it."""

    start: int
    end: int
    states: States


@dataclass(slots=True)
class Transcript:
    """The words of the source as they were heard; only where they are is kept."""

    words_before: int = 0  # the window
    looks: list[int] = field(default_factory=list)  # the mel frame of each word in it
    tokens: tuple[int, ...] = ()  # a guess for the next time

    def forget(self, frame: int) -> None:
        gone = [look for look in self.looks if look < frame]
        if gone:
            self.words_before += len(gone)
            self.looks = [look for look in self.looks if look >= frame]
            self.tokens = ()


@dataclass(slots=True, eq=False)
class WhisperStream:
    """Bounded however long the talk."""

    mel: LogMel
    ear: Ear
    source: str | None  # the language asked for; None: whichever is heard
    target: str
    language: str | None = None
    said: list[int] = field(default_factory=list)  # committed tokens of this window
    looks: list[int] = field(default_factory=list)  # the mel frame each of them stands for
    before: list[int] = field(default_factory=list)  # tokens of the sound before this window
    unfinished: list[int] = field(default_factory=list)  # committed tokens of a word not whole
    settled: Draft = field(default_factory=Draft)  # of sound that is gone, not yet committed
    rest: Draft = field(default_factory=Draft)  # of the last draft, not committed
    seen: Window | None = None
    loudest: float = QUIETEST
    ends_heard: int = 0
    transcript: Transcript = field(default_factory=Transcript)
    transcribe: Callable[[WhisperStream], None] | None = None  # brings the transcript up to date

    @property
    def heard_ms(self) -> float:
        return self.mel.heard * 1000.0 / RATE

    @property
    def pause_ms(self) -> float:
        return self.ear.silence * 1000.0

    @property
    def rested(self) -> bool:
        """Whether the pause is so long that the sentence before it is over."""
        return self.ear.silence > OVER

    @property
    def words_heard(self) -> int:
        """Words of the transcript, which is made when somebody asks."""
        if self.transcribe is not None:
            self.transcribe(self)
        return self.transcript.words_before + len(self.transcript.looks)

    @property
    def frames(self) -> int:
        """Mel frames in the window."""
        return self.mel.frames - self.mel.start

    @property
    def context(self) -> tuple[int, ...]:
        return tuple(self.before[-CONTEXT:])

    def hear(self, samples: Samples) -> None:
        before = self.mel.frames
        self.mel.hear(samples)
        self.ear.hear(samples)
        faded = self.loudest - FADING * (self.mel.frames - before)
        self.loudest = max(QUIETEST, faded, self.mel.loudest)
        if not self.ear.spoken:
            self.forget(self.mel.frames - LEAD_IN)

    def nothing_new(self) -> bool:
        """Whether all that came since the encoder last looked was silence.

        In the first moments of a pause it looks again all the same: a policy that compares drafts
        shall not take one draft, seen twice, for two that agree. And once when the pause is long,
        since the sentence is then over.
        """
        if self.seen is None or self.seen.start != self.mel.start:
            return False
        unseen = (self.mel.frames - self.seen.end) / SECOND
        enough = OVER if self.rested else PAUSE
        return unseen == 0 or self.ear.silence > unseen + enough

    def forget(self, frame: int) -> None:
        """Let the window begin at a frame, an even one: the encoder takes them two by two."""
        self.mel.forget(frame - frame % 2)
        self.transcript.forget(self.mel.start)

    def take(self, draft: Draft, tokens: int) -> None:
        """Tokens of a draft became final."""
        settled = min(tokens, len(self.settled.tokens))
        self.settled = self.settled.after(settled)
        self.said += draft.tokens[settled:tokens]
        if draft.attention is not None:
            peaks = draft.attention[settled:tokens].argmax(axis=1)
            self.looks += [self.mel.start + 2 * int(peak) for peak in peaks]
        if draft.words_within(tokens):
            self.unfinished = list(draft.tokens[draft.whole(tokens) : tokens])
        else:
            self.unfinished += draft.tokens[:tokens]
        self.rest = draft.after(tokens)

    def cut(self, tokens: int, frame: int) -> None:
        """The first tokens that were said, and the sound before a frame, leave the window."""
        self.before = [*self.before, *self.said[:tokens]][-CONTEXT:]
        del self.said[:tokens], self.looks[:tokens]
        self.forget(frame)

    def settle(self, tokens: tuple[int, ...], log_probs: tuple[float, ...], frame: int) -> None:
        """The sound before a frame leaves the window; what was drafted of it waits for commits."""
        self.settled = replace(
            self.settled,
            tokens=self.settled.tokens + tokens,
            log_probs=self.settled.log_probs + log_probs,
        )
        self.cut(len(self.said), frame)
        self.before = [*self.before, *tokens][-CONTEXT:]
        self.rest = self.settled

    def close(self) -> None:
        """The utterance is over: nothing of it is needed any more."""
        self.said, self.looks, self.before, self.unfinished = [], [], [], []
        self.settled = self.rest = Draft()
        self.forget(self.mel.frames)
        self.ear.reset()
