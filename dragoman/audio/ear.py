"""The ear of one speaker: tells speech from other sound, whatever the microphone's gain.

The interpreter owns it, so that every model learns of pauses and none has to listen for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.audio.chunk import Samples
from dragoman.audio.gate import SpeechGate
from dragoman.audio.vad import WINDOW_SECONDS, Probabilities, VadStream


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
        return self._made_of(self._activity.hear(samples))

    def waiting(self, samples: Samples) -> Waiting | None:
        """Take the next piece of sound and leave it to `listen` to say what it is, for several
        ears at once; None: this ear can only `hear` for itself, and has taken nothing."""
        if not isinstance(self._activity, VadStream):
            return None
        return Waiting(self, self._activity, self._activity.windows(samples))

    def _made_of(self, probabilities: Probabilities) -> Voice:
        ended = self._gate.hear(probabilities)
        speaking = self._gate.speaking
        return Voice(speaking or bool(ended), speaking, self._gate.silence * 1000.0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A piece of sound that an ear has taken in, in windows for its stream."""

    ear: Ear
    stream: VadStream
    windows: Samples


def prepare(ear: Ear | None, samples: Samples) -> Waiting | Voice:
    """The next piece of sound for `listen`, or what it is, of an ear that hears for itself."""
    if ear is None:
        return SPEECH
    waiting = ear.waiting(samples) if isinstance(ear, Ear) else None
    return waiting or ear.hear(samples)


def listen(pieces: Sequence[Waiting | Voice]) -> list[Voice]:
    """What pieces of sound are, one for each of several ears; a network hears them together."""
    voices = [piece if isinstance(piece, Voice) else SPEECH for piece in pieces]
    networks: dict[int, list[tuple[int, Waiting]]] = {}
    for index, piece in enumerate(pieces):
        if isinstance(piece, Waiting):
            networks.setdefault(id(piece.stream.vad), []).append((index, piece))
    for group in networks.values():
        streams = [piece.stream for _, piece in group]
        told = streams[0].vad.hear(streams, [piece.windows for _, piece in group])
        for (index, piece), probabilities in zip(group, told, strict=True):
            voices[index] = piece.ear._made_of(probabilities)
    return voices
