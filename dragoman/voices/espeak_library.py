"""The eSpeak NG library, driven through ctypes.

Its licence is the GPL and its state is global, so it is loaded only in processes that do nothing
else: `espeak_worker` for speaking, the voicing processes for corpora.
"""

from __future__ import annotations

import ctypes
import re
from ctypes.util import find_library
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError

# espeak_EVENT_TYPE, espeak_PARAMETER and flags, from the library's public speak_lib.h.
LIST_END, WORD, END, PHONEME = 0, 1, 5, 7
RATE, PITCH, PITCH_RANGE = 1, 3, 4
_SYNCHRONOUS, _PHONEME_EVENTS, _UTF8 = 2, 1, 1
TIE = "\u0361"
"""The bar that makes one sound of two letters, as in t͡ʃ."""
_IPA_WITH_TIES = 0x02 | 0x80 | ord(TIE) << 8
_BUFFER_MS = 2000  # longer buffers, fewer calls back into Python

_OTHER_LANGUAGE = re.compile(rf"\([a-z0-9{TIE}-]+\)")
"""How the library marks words that it reads in another language: `(en)`, ties and all."""


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


class _Voice(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_char_p),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
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


class EspeakLibrary:
    """One eSpeak NG library; one per process."""

    def __init__(self) -> None:
        self._library, data = _load()
        self.rate: int = self._library.espeak_Initialize(
            _SYNCHRONOUS, _BUFFER_MS, data, _PHONEME_EVENTS
        )
        if self.rate <= 0:
            raise DragomanError("eSpeak NG cannot find its data; reinstall espeakng-loader.")
        self._library.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_Voice))
        self._library.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self._sounds: list[NDArray[np.int16]] = []
        self._events: list[Event] = []
        self._callback = _Callback(self._hear)  # kept: the library holds only a pointer
        self._library.espeak_SetSynthCallback(self._callback)

    def voices(self) -> list[str]:
        """Names that `set_voice` takes: `de`, `en-us`, `cmn`."""
        return sorted(name.lower() for name in self._list(None))

    def has_voice(self, name: str) -> bool:
        """Whether the library knows a voice, and if so, chooses it."""
        _, _, speaker = name.partition("+")
        if speaker and speaker not in self._speakers:  # the library itself lets that pass
            return False
        return bool(self._library.espeak_SetVoiceByName(name.encode()) == 0)

    @cached_property
    def _speakers(self) -> set[str]:
        return self._list(ctypes.byref(_Voice(languages=b"variant")))

    def _list(self, like: Any) -> set[str]:
        """The last parts of the identifiers of voices: of `gmw/en-US`, `en-US`."""
        found = self._library.espeak_ListVoices(like)
        names, number = set(), 0
        while found[number]:
            names.add(found[number].contents.identifier.decode().rsplit("/", 1)[-1])
            number += 1
        return names

    def set_voice(self, name: str) -> None:
        """A language or an accent, and a speaker after a plus: `en-us+f3`."""
        if not self.has_voice(name):
            raise DragomanError(f"eSpeak NG has no voice '{name}'.")

    def set_parameter(self, parameter: int, value: int) -> None:
        self._library.espeak_SetParameter(parameter, value, 0)

    def seed(self, seed: int) -> None:
        """Breath and frication are random noise inside the library: seed them."""
        if hasattr(self._library, "espeak_ng_SetRandSeed"):
            self._library.espeak_ng_SetRandSeed(ctypes.c_long(seed))
        ctypes.CDLL(None).srand(ctypes.c_uint(seed))

    def speak(self, text: str) -> tuple[NDArray[np.int16], list[Event]]:
        """Sound with the voice that is set, and what begins where in it."""
        self._sounds, self._events = [], []
        data = text.encode("utf-8") + b"\0"
        self._library.espeak_Synth(data, len(data), 0, 1, 0, _UTF8, None, None)
        sound = np.concatenate(self._sounds) if self._sounds else np.zeros(0, np.int16)
        return sound, self._events

    def phonemes(self, text: str) -> str:
        """A clause in the International Phonetic Alphabet, as the voice that is set reads it."""
        data = ctypes.create_string_buffer(text.encode("utf-8"))
        place = ctypes.c_void_p(ctypes.addressof(data))
        parts = []
        while place.value:  # the library reads a clause at a time and moves the pointer on
            part = self._library.espeak_TextToPhonemes(ctypes.byref(place), _UTF8, _IPA_WITH_TIES)
            parts.append((part or b"").decode("utf-8", "replace"))
        return _OTHER_LANGUAGE.sub("", " ".join(parts)).strip()

    def _hear(self, sound: Any, samples: int, events: Any) -> int:
        for event in events:  # an array without a length, closed by an event of type LIST_END
            kind = event.type
            if kind == LIST_END:
                break
            if kind in (WORD, PHONEME, END):
                phone = event.id.string.decode("utf-8", "replace") if kind == PHONEME else ""
                self._events.append(Event(kind, event.text_position, event.sample, phone))
        if sound and samples > 0:
            self._sounds.append(np.ctypeslib.as_array(sound, (samples,)).copy())
        return 0


def _load() -> tuple[ctypes.CDLL, bytes | None]:
    """The library and its data folder: the PyPI wheel's, else the system's."""
    try:
        import espeakng_loader
    except ImportError:
        path = find_library("espeak-ng")
        if path is None:
            raise DragomanError(
                "eSpeak NG is not installed; run: pip install 'dragoman[espeak]'"
            ) from None
        return ctypes.CDLL(path), None
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    return library, espeakng_loader.get_data_path().encode()
