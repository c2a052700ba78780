"""From probabilities to utterances: where speech begins and ends, without flicker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dragoman.errors import DragomanError


@dataclass(frozen=True, slots=True)
class GateSettings:
    """When the gate opens and closes; all durations are seconds."""

    on: float = 0.5
    """Speech may have begun at this probability or more."""
    off: float = 0.35
    """It may have ended below this one. What lies between changes nothing."""
    min_speech: float = 0.1
    """Shorter than this is a click, not speech."""
    min_silence: float = 0.5
    """Shorter than this is a pause within speech."""
    pad: float = 0.1
    """Added on both sides: the first and last sounds of an utterance are soft."""

    def __post_init__(self) -> None:
        if not 0 < self.off <= self.on < 1:
            raise DragomanError(
                f"A speech gate opens at {self.on} and closes at {self.off}: "
                "it has to be 0 < off <= on < 1."
            )
        if min(self.min_speech, self.min_silence, self.pad) < 0:
            raise DragomanError("A speech gate has no negative durations.")
        if 2 * self.pad > self.min_silence:
            raise DragomanError(
                f"A speech gate that adds {self.pad} s on both sides needs pauses of twice that, "
                f"not {self.min_silence} s; else utterances would overlap."
            )


@dataclass(frozen=True, slots=True)
class Utterance:
    """A stretch of speech, in seconds from the start of the recording."""

    start: float
    end: float


class SpeechGate:
    """Follows the probability of speech window by window.

    It opens `min_speech` after the speaker began and closes `min_silence` after they ended; the
    times it returns are those of the beginning and the end themselves.
    """

    def __init__(self, window_seconds: float, settings: GateSettings | None = None) -> None:
        self._window = window_seconds
        self._settings = settings or GateSettings()
        self._now = 0
        self._onset: int | None = None  # the first window of speech, or of what may become speech
        self._pause: int | None = None  # the first window of a pause in it
        self._loud_until = 0
        self.speaking = False

    @property
    def started(self) -> float | None:
        """Where the utterance that is being spoken began, in seconds; None in silence."""
        if not self.speaking or self._onset is None:
            return None
        return max(0.0, self._onset * self._window - self._settings.pad)

    @property
    def silence(self) -> float:
        """For how many seconds nothing has sounded like speech."""
        return (self._now - self._loud_until) * self._window

    def hear(self, probabilities: Iterable[float]) -> list[Utterance]:
        """The utterances that are known to have ended now."""
        told = [float(probability) for probability in probabilities]
        if told and self.speaking and min(told) >= self._settings.on:
            # Most of the time somebody speaks and goes on: nothing changes but the time.
            self._now += len(told)
            self._pause, self._loud_until = None, self._now
            return []
        ended = [self._step(probability) for probability in told]
        return [utterance for utterance in ended if utterance is not None]

    def finish(self) -> list[Utterance]:
        """The utterance in which the recording ended, if any."""
        return [self._close()] if self.speaking else []

    def _step(self, probability: float) -> Utterance | None:
        here, self._now = self._now, self._now + 1
        if probability >= self._settings.on:
            self._onset = here if self._onset is None else self._onset
            self._pause = None
            self._loud_until = self._now
        elif probability < self._settings.off and self._pause is None:
            self._pause = here
        if self.speaking:
            return self._close() if self._lasts(self._pause, self._settings.min_silence) else None
        if self._pause is not None:
            self._onset = None  # it was a click
        self.speaking = self._lasts(self._onset, self._settings.min_speech)
        return None

    def _lasts(self, since: int | None, seconds: float) -> bool:
        # A millionth of slack, so that 16 windows of 32 ms do last 0.512 s.
        return since is not None and (self._now - since) * self._window >= seconds - 1e-6

    def _close(self) -> Utterance:
        start = self.started
        assert start is not None
        end = (self._now if self._pause is None else self._pause) * self._window
        self.speaking, self._onset = False, None
        return Utterance(start, min(end + self._settings.pad, self._now * self._window))
