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

    def prepare(self, samples: Samples) -> Heard:
        """Take the next piece of sound; what it is, `listen` tells, for several ears at once."""
        if isinstance(self._activity, VadStream):
            return Heard(self, self._activity, self._activity.windows(samples))
        return Heard(self, None, self._activity.hear(samples))

    def _made_of(self, probabilities: Probabilities) -> Voice:
        ended = self._gate.hear(probabilities)
        speaking = self._gate.speaking
        return Voice(speaking or bool(ended), speaking, self._gate.silence * 1000.0)


@dataclass(frozen=True, slots=True)
class Heard:
    """A piece of sound that an ear has taken in: windows for the network of its stream, or, where
    it has none, the probabilities of speech."""

    ear: Ear
    stream: VadStream | None
    numbers: Samples


def listen(pieces: Sequence[Heard]) -> list[Voice]:
    """What pieces of sound are, one for each of several ears; a network hears them together."""
    told = [piece.numbers for piece in pieces]
    networks: dict[int, list[int]] = {}
    for index, piece in enumerate(pieces):
        if piece.stream is not None:
            networks.setdefault(id(piece.stream.vad), []).append(index)
    for group in networks.values():
        streams = [stream for index in group if (stream := pieces[index].stream) is not None]
        heard = streams[0].vad.hear(streams, [pieces[index].numbers for index in group])
        for index, probabilities in zip(group, heard, strict=True):
            told[index] = probabilities
    return [piece.ear._made_of(one) for piece, one in zip(pieces, told, strict=True)]
