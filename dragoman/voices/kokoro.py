"""Kokoro 82M: natural voices for six languages, from the weight store.

English is read by hibari's dictionary, whose alphabet is Kokoro's own; the other languages by
eSpeak NG. It speaks Japanese and Chinese as well, but eSpeak NG cannot read those for it.
"""

from __future__ import annotations

import json
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.store import find, get
from dragoman.voices import espeak
from dragoman.voices.base import is_speakable
from dragoman.voices.network import load_network
from dragoman.voices.phonemes import cut, transcribe
from dragoman.voices.polish import join, polish

MODEL = "kokoro"
LONGEST = 400
"""Phonemes in one go; the network takes 510."""

_SPEAKER_OF = {
    "en": "af_heart",
    "es": "ef_dora",
    "fr": "ff_siwis",
    "hi": "hf_alpha",
    "it": "if_sara",
    "pt": "pf_dora",
}
_LANGUAGE_OF_LETTER = {"a": "en", "b": "en", "e": "es", "f": "fr", "h": "hi", "i": "it", "p": "pt"}
_READER = {"pt": "pt-br"}
_LETTERS = {
    "a͡ɪ": "I",
    "a͡ʊ": "W",
    "d͡z": "ʣ",
    "d͡ʒ": "ʤ",
    "e͡ɪ": "A",
    "o͡ʊ": "O",
    "ə͡ʊ": "Q",
    "t͡s": "ʦ",
    "t͡ʃ": "ʧ",
    "ɔ͡ɪ": "Y",
}
"""Sounds that are one letter in Kokoro's alphabet."""


class KokoroVoice:
    """One of Kokoro's speakers."""

    rate = 24000

    def __init__(self, language: str, speaker: str | None = None) -> None:
        wish = None if language == "en" else espeak.missing(language)
        if wish is not None:
            raise DragomanError(f"Kokoro needs eSpeak NG to read '{language}': {wish}")
        self._folder = get(MODEL)
        self._speaker = _check(speaker or _SPEAKER_OF[language], language, self._folder)
        self._language = language
        self.languages = (language,)
        self.name = f"kokoro:{self._speaker}"

    def load(self) -> None:
        self.speak("a")  # the first word is the slow one

    def speak(self, text: str, speed: float = 1.0) -> Samples:
        if not is_speakable(text):
            return np.zeros(0, np.float32)
        pieces = cut(self._read(text), LONGEST)
        return join([self._synthesise(piece, speed) for piece in pieces], self.rate)

    def _read(self, text: str) -> str:
        """Phonemes in Kokoro's alphabet."""
        if self._language == "en":
            return str(self._english(" ".join(text.split())))
        phonemes = transcribe(text, _READER.get(self._language, self._language))
        for tied, letter in _LETTERS.items():
            phonemes = phonemes.replace(tied, letter)
        return phonemes

    def _synthesise(self, phonemes: str, speed: float) -> Samples:
        tokens = [self._vocabulary[letter] for letter in phonemes if letter in self._vocabulary]
        if not tokens:
            return np.zeros(0, np.float32)
        (sound,) = self._network.run(
            None,
            {
                "input_ids": np.array([[0, *tokens, 0]], np.int64),
                "style": self._styles[None, min(len(tokens), len(self._styles) - 1)],
                "speed": np.array([speed], np.float32),
            },
        )
        return polish(sound, self.rate)

    @property
    def _network(self) -> Any:
        return _network(self._folder)

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        table = json.loads((self._folder / "tokenizer.json").read_text(encoding="utf-8"))
        return dict(table["model"]["vocab"])

    @cached_property
    def _styles(self) -> Samples:
        """A style vector for every length of a phrase: [phonemes, 256]."""
        path = self._folder / "voices" / f"{self._speaker}.bin"
        return np.fromfile(path, np.float32).reshape(-1, 256)

    @property
    def _english(self) -> Any:
        return _reader(self._speaker.startswith("b"))


@cache
def _network(folder: Path) -> Any:
    """One network for all speakers."""
    return load_network(folder / "model.onnx")


@cache
def _reader(british: bool) -> Any:
    from hibari.g2p import G2P

    return G2P(british=british)


def languages() -> tuple[str, ...]:
    return tuple(_SPEAKER_OF)


def missing(language: str) -> str | None:
    """What has to be done before Kokoro can speak a language."""
    if find(MODEL) is None:
        return "run: dragoman models get kokoro"
    return None if language == "en" else espeak.missing(language)


def speakers(language: str) -> tuple[str, ...]:
    """All that speak a language."""
    return _able(language, get(MODEL))


def _able(language: str, folder: Path) -> tuple[str, ...]:
    known = sorted(path.stem for path in (folder / "voices").glob("*.bin"))
    return tuple(name for name in known if _LANGUAGE_OF_LETTER.get(name[0]) == language)


def _check(speaker: str, language: str, folder: Path) -> str:
    """The speaker, if there is one of that name for that language."""
    able = _able(language, folder)
    if speaker not in able:
        known = {path.stem for path in (folder / "voices").glob("*.bin")}
        problem = "does not speak" if speaker in known else "is no speaker of"
        raise DragomanError(
            f"Kokoro's '{speaker}' {problem} '{language}'; choose one of {', '.join(able)}."
        )
    return speaker
