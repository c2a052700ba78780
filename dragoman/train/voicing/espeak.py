"""eSpeak NG as an engine: over a hundred languages, hundreds of times faster than speech.

The library runs in the voicing processes. It reports where each word and phoneme begins in the
sound: the oracle word boundaries of a voiced corpus.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from dragoman.train.voicing.spoken import Spoken
from dragoman.voices.espeak import library_name
from dragoman.voices.espeak_library import (
    PHONEME,
    PITCH,
    PITCH_RANGE,
    RATE,
    WORD,
    EspeakLibrary,
    Event,
)

# Voices that sound like people, of those that come with the library.
_PEOPLE = """
    m1 m2 m3 m4 m5 m6 m7 m8 f1 f2 f3 f4 f5 adam Alex Alicia Andrea Andy Annie antonio aunty
    belinda benjamin boris caleb david Denis Diogo ed edward edward2 Gene Gene2 grandma grandpa
    gustave Henrique Hugo ian iven iven2 iven3 iven4 Jacky john Lee linda marcelo Marco Mario max
    Michael michel miguel Mike norbert pablo paul pedro quincy rob robert sandro shelby steph
    steph2 steph3 travis victor zac
"""
VARIANTS = tuple(_PEOPLE.split())
ACCENTS = {
    "en": (
        *("en-us", "en-us", "en", "en", "en-gb-x-rp", "en-gb-scotland", "en-029"),
        *("en-us-nyc", "en-gb-x-gbclan", "en-gb-x-gbcwmd"),
    ),
    "es": ("es", "es-419"),
    "fr": ("fr", "fr-be", "fr-ch"),
    "pt": ("pt", "pt-br"),
}


class Espeak:
    """One eSpeak NG library; one per process, since the library keeps global state."""

    name = "espeak"

    def __init__(self) -> None:
        self.library = EspeakLibrary()

    def draw(self, language: str, random: np.random.Generator) -> str:
        """`en-us+f3 pitch 62 range 50 rate 171`."""
        accent = random.choice(ACCENTS.get(language, (library_name(language),)))
        pitch, spread = random.integers(20, 85), random.integers(30, 75)
        rate = int(np.clip(random.normal(175, 25), 120, 260))
        return f"{accent}+{random.choice(VARIANTS)} pitch {pitch} range {spread} rate {rate}"

    def say(self, text: str, voice: str, random: np.random.Generator) -> Spoken:
        name, _, pitch, _, spread, _, rate = voice.rsplit(" ", 6)
        library = self.library
        library.set_voice(name)
        for parameter, value in ((PITCH, pitch), (PITCH_RANGE, spread), (RATE, rate)):
            library.set_parameter(parameter, int(value))
        library.seed(int(random.integers(2**31)))
        sound, events = library.speak(text)
        ends = boundaries(text, events, len(sound))
        return Spoken(
            sound=sound.astype(np.float32) / 32768,
            rate=library.rate,
            word_ends=[end / library.rate for end in ends.words],
            phones=ends.phones,
            phone_ends=[end / library.rate for end in ends.phone_ends],
        )


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Ends in samples: one per whitespace-separated word of the text, one per phone."""

    words: list[int]
    phones: list[str]
    phone_ends: list[int]


def boundaries(text: str, events: list[Event], samples: int) -> Boundaries:
    """Where words and phones end, from events that say where things begin.

    A number or a hyphenated word is several words to the synthesiser: its end is the end of its
    last phone. A word without sound (a lone dash) ends where the word before it ends.
    """
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    words: list[int] = [0] * len(starts)
    phones: list[str] = []
    phone_ends: list[int] = []
    word = -1
    for number, event in enumerate(events):
        if event.type == WORD:
            word = bisect_right(starts, event.place - 1) - 1
        elif event.type == PHONEME and event.phone:
            end = events[number + 1].sample if number + 1 < len(events) else samples
            phones.append(event.phone)
            phone_ends.append(end)
            if word >= 0 and not event.phone.startswith("_"):
                words[word] = max(words[word], end)
    latest = 0
    for number, end in enumerate(words):
        words[number] = latest = max(latest, end)
    return Boundaries(words, phones, phone_ends)
