"""What a voice is: text in, sound out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError


class Voice(Protocol):
    """A synthesiser ready to speak. Not for several threads at once."""

    @property
    def name(self) -> str:
        """What the user calls it: `hibari`, `kokoro:af_heart`, `voices/anna.onnx`."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages that it speaks; first that of the text it is given."""

    @property
    def rate(self) -> int:
        """Samples a second of its sound."""

    def load(self) -> None:
        """Get ready now, so that the first phrase is not late."""

    def speak(self, text: str, speed: float = 1.0) -> Samples:
        """The sound of a phrase, polished; empty where there is nothing to pronounce.

        At a speed of 1.4 it takes about 1 / 1.4 of its time. What goes wrong is a DragomanError.
        """


class Synthesiser(ABC):
    """What all voices here share: they say nothing where there is nothing to pronounce, and are
    slow with the first word alone."""

    def load(self) -> None:
        self.speak("a")

    def speak(self, text: str, speed: float = 1.0) -> Samples:
        return self._pronounce(text, speed) if is_speakable(text) else np.zeros(0, np.float32)

    @abstractmethod
    def _pronounce(self, text: str, speed: float) -> Samples:
        """The sound of a phrase that has something to pronounce, polished."""


def sound_of(voice: Voice, text: str, speed: float) -> Samples:
    """A text spoken; whatever goes wrong in the voice is a DragomanError."""
    try:
        return voice.speak(text, speed)
    except DragomanError:
        raise
    except Exception as error:  # a voice is a guest: nobody knows what it may raise
        raise DragomanError(f"The voice '{voice.name}' failed: {error}.") from error


def is_speakable(text: str) -> bool:
    """Whether a text has anything to pronounce: a letter or a digit of any script."""
    return any(character.isalnum() for character in text)
