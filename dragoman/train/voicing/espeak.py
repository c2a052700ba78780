"""eSpeak NG as an engine: over a hundred languages, hundreds of times faster than speech.

The library is driven through ctypes at run time, in a worker process of its own. It reports where
each word and phoneme begins in the sound: the oracle word boundaries of a voiced corpus.
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from dragoman.errors import DragomanError
from dragoman.train.voicing.spoken import Spoken

# espeak_EVENT_TYPE, espeak_PARAMETER and flags, from the library's public speak_lib.h.
_LIST_END, _WORD, _END, _PHONEME = 0, 1, 5, 7
_RATE, _PITCH, _PITCH_RANGE = 1, 3, 4
_SYNCHRONOUS, _PHONEME_EVENTS, _UTF8 = 2, 1, 1
_BUFFER_MS = 2000  # longer buffers, fewer calls back into Python

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
    "zh": ("cmn",),
}


class _Identity(ctypes.Union):
    _fields_ = [("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8)]


class _Event(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Identity),
    ]


_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


@dataclass(frozen=True, slots=True)
class Event:
    """A word, phoneme or pause begins at a sample; `place` is a 1-based character of the text."""

    type: int
    place: int
    sample: int
    phone: str


class Espeak:
    """One eSpeak NG library; one per process, since the library keeps global state."""

    name = "espeak"

    def __init__(self) -> None:
        self.library, data = _load()
        self.rate = self.library.espeak_Initialize(_SYNCHRONOUS, _BUFFER_MS, data, _PHONEME_EVENTS)
        if self.rate <= 0:
            raise DragomanError("eSpeak NG cannot find its data; reinstall espeakng-loader.")
        self._sounds: list[np.ndarray] = []
        self._events: list[Event] = []
        self._callback = _Callback(self._hear)  # kept: the library holds only a pointer
        self.library.espeak_SetSynthCallback(self._callback)

    def casting(self, language: str, random: np.random.Generator) -> str:
        """`en-us+f3 pitch 62 range 50 rate 171`."""
        accent = random.choice(ACCENTS.get(language, (language,)))
        pitch, spread = random.integers(20, 85), random.integers(30, 75)
        rate = int(np.clip(random.normal(175, 25), 120, 260))
        return f"{accent}+{random.choice(VARIANTS)} pitch {pitch} range {spread} rate {rate}"

    def say(self, text: str, voice: str, random: np.random.Generator) -> Spoken:
        name, _, pitch, _, spread, _, rate = voice.rsplit(" ", 6)
        library = self.library
        if library.espeak_SetVoiceByName(name.encode()) != 0:
            raise DragomanError(f"eSpeak NG has no voice '{name}'.")
        for parameter, value in ((_PITCH, pitch), (_PITCH_RANGE, spread), (_RATE, rate)):
            library.espeak_SetParameter(parameter, int(value), 0)
        self._seed(int(random.integers(2**31)))
        self._sounds.clear()
        self._events.clear()
        data = text.encode("utf-8") + b"\0"
        library.espeak_Synth(data, len(data), 0, 1, 0, _UTF8, None, None)
        sound = np.concatenate(self._sounds) if self._sounds else np.zeros(0, np.int16)
        ends = boundaries(text, self._events, len(sound))
        return Spoken(
            sound=sound.astype(np.float32) / 32768,
            rate=self.rate,
            word_ends=[end / self.rate for end in ends.words],
            phones=ends.phones,
            phone_ends=[end / self.rate for end in ends.phone_ends],
        )

    def _seed(self, seed: int) -> None:
        """Breath and frication are random noise inside the library: seed them."""
        if hasattr(self.library, "espeak_ng_SetRandSeed"):
            self.library.espeak_ng_SetRandSeed(ctypes.c_long(seed))
        ctypes.CDLL(None).srand(ctypes.c_uint(seed))

    def _hear(self, sound: object, samples: int, events: ctypes.Array[_Event]) -> int:
        for event in events:  # an array without a length, closed by an event of type _LIST_END
            kind = event.type
            if kind == _LIST_END:
                break
            if kind in (_WORD, _PHONEME, _END):
                phone = event.id.string.decode("utf-8", "replace") if kind == _PHONEME else ""
                self._events.append(Event(kind, event.text_position, event.sample, phone))
        if sound and samples > 0:
            self._sounds.append(np.ctypeslib.as_array(sound, (samples,)).copy())
        return 0


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
        if event.type == _WORD:
            word = bisect_right(starts, event.place - 1) - 1
        elif event.type == _PHONEME and event.phone:
            end = events[number + 1].sample if number + 1 < len(events) else samples
            phones.append(event.phone)
            phone_ends.append(end)
            if word >= 0 and not event.phone.startswith("_"):
                words[word] = max(words[word], end)
    latest = 0
    for number, end in enumerate(words):
        words[number] = latest = max(latest, end)
    return Boundaries(words, phones, phone_ends)


def _load() -> tuple[ctypes.CDLL, bytes | None]:
    """The library and its data folder: the PyPI wheel's, else the system's."""
    try:
        import espeakng_loader
    except ImportError:
        from ctypes.util import find_library

        path = find_library("espeak-ng")
        if path is None:
            raise DragomanError(
                "eSpeak NG is not installed; run: pip install 'dragoman[espeak]'"
            ) from None
        return ctypes.CDLL(path), None
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    return library, espeakng_loader.get_data_path().encode()
