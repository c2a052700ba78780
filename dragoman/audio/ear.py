"""The ear of one speaker: tells speech from other sound, whatever the microphone's gain.

The interpreter owns it, so that every model learns of pauses and none has to listen for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dragoman.audio.chunk import Samples
from dragoman.audio.gate import SpeechGate
from dragoman.audio.vad import WINDOW_SECONDS, Probabilities


@dataclass(frozen=True, slots=True)
class Voice:
    """What an ear made of a piece of sound. Where nobody listens, all sound may be speech."""

    spoken: bool = True  # somebody spoke in it
    speaking: bool = True  # and does so at its end
    silence_ms: float = 0.0  # at its end, for how long nobody has spoken


SPEECH = Voice()


class VoiceActivity(Protocol):
    """The probability of speech, window by window; a `VadStream` is one."""

    def hear(self, samples: Samples) -> Probabilities: ...


class Ear:
    """Listens to one speaker; what it keeps does not grow."""

    def __init__(self, activity: VoiceActivity) -> None:
        self._activity = activity
        self._gate = SpeechGate(WINDOW_SECONDS)

    def hear(self, samples: Samples) -> Voice:
        """What the next piece of sound is."""
        ended = self._gate.hear(self._activity.hear(samples))
        speaking = self._gate.speaking
        return Voice(speaking or bool(ended), speaking, self._gate.silence * 1000.0)
