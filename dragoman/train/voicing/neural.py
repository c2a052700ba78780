"""Neural voices as engines: slower than eSpeak NG, much closer to people."""

from __future__ import annotations

import numpy as np

from dragoman.train.voicing.spoken import Spoken
from dragoman.voices.base import Voice, sound_of
from dragoman.voices.registry import VOICES, open_voice


class HibariEngine:
    """hibari-tts: one English voice in 8 MB, about a hundred times faster than speech.

    Reading its sound at another rate changes pitch and formants together, which makes several
    speakers of one; it does not say where words end.
    """

    name = "hibari"

    def __init__(self) -> None:
        from hibari import Hibari

        self.voice = Hibari(threads=1)

    def draw(self, language: str, random: np.random.Generator) -> str:
        """`heart speed 1.05 size 0.93`: a size below 1 is a smaller speaker, so a higher voice."""
        speed = float(np.clip(random.normal(1.0, 0.12), 0.75, 1.35))
        return f"heart speed {speed:.2f} size {random.uniform(0.85, 1.2):.2f}"

    def say(self, text: str, voice: str, random: np.random.Generator) -> Spoken:
        _, _, speed, _, size = voice.split(" ")
        # A bigger speaker is read slower: speak faster by as much, so the pace stays as drawn.
        pace = float(speed) * float(size)
        sound = self.voice(text, speed=pace, seed=int(random.integers(2**31)))
        return Spoken(sound.astype(np.float32), int(self.voice.sample_rate / float(size)))


class NamedVoice:
    """Any voice that Dragoman speaks with (Kokoro, Piper, ...); it does not tell word ends.

    One that has several speakers (`kokoro`) draws one for every utterance, unless its name chooses
    (`kokoro:af_heart`). Whether the same seed gives the same bytes depends on the voice.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.voices: dict[str, Voice] = {}

    def draw(self, language: str, random: np.random.Generator) -> str:
        """`kokoro:af_bella speed 1.05 size 0.93`"""
        offer = VOICES.get(self.name)  # None: the name has a speaker in it, or is a path
        draw = offer.draw if offer else None
        name = f"{self.name}:{draw(language, random)}" if draw else self.name
        if name not in self.voices:
            self.voices[name] = open_voice(name, language)
        speed = float(np.clip(random.normal(1.0, 0.12), 0.75, 1.35))
        return f"{name} speed {speed:.2f} size {random.uniform(0.9, 1.12):.2f}"

    def say(self, text: str, voice: str, random: np.random.Generator) -> Spoken:
        name, _, speed, _, size = voice.rsplit(" ", 4)
        speaker = self.voices[name]
        sound = sound_of(speaker, text, float(speed) * float(size))
        return Spoken(sound, int(speaker.rate / float(size)))
