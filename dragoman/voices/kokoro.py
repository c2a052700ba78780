"""Kokoro 82M: natural voices for seven languages, from the weight store.

A speaker is a table of numbers, and the mean of two is a speaker too: `af_bella+am_adam`, or with
an accent, `af_bella+zm_yunxi`. English is read by hibari's dictionary, whose alphabet is Kokoro's
own; the other languages by eSpeak NG. It speaks Japanese and Chinese as well, but eSpeak NG cannot
read those for it.

Nobody taught it German. Speakers of three other languages, blended, say it all the same, in sounds
that these languages have; each of them alone has too much of an accent. An English one had so
much that little was understood.
"""

from __future__ import annotations

import json
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.store import at_hand, get
from dragoman.voices import espeak
from dragoman.voices.base import Synthesiser
from dragoman.voices.german_text import spell_out
from dragoman.voices.network import load_network
from dragoman.voices.phonemes import cut, transcribe
from dragoman.voices.polish import join, polish

MODEL = "kokoro"
LONGEST = 400
"""Phonemes in one go; the network takes 510."""

_SPEAKER_OF = {
    "de": "if_sara+ef_dora+ff_siwis",
    "en": "af_heart",
    "es": "ef_dora",
    "fr": "ff_siwis",
    "hi": "hf_alpha",
    "it": "if_sara",
    "pt": "pf_dora",
}
_INITIALS = {"de": "efi", "en": "ab", "es": "e", "fr": "f", "hi": "h", "it": "i", "pt": "p"}
"""What the names of those begin with who can speak a language."""
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
_GERMAN = {"ɔ͡ø": "Y", "ʏ": "y", "ɑː": "aː", "ɜ": "əɾ", "r": "ɾ"}
"""Sounds of German that its alphabet lacks or its speakers do not know, as near as they come. The
"er" of "immer" has an r, as on a stage: without it, they say "imme"."""


class KokoroVoice(Synthesiser):
    """One of Kokoro's speakers, or several blended: their names with a plus between them."""

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

    def _pronounce(self, text: str, speed: float) -> Samples:
        pieces = cut(self._read(text), LONGEST)
        return join([self._synthesise(piece, speed) for piece in pieces], self.rate)

    def _read(self, text: str) -> str:
        """Phonemes in Kokoro's alphabet."""
        if self._language == "en":
            return str(self._english(" ".join(text.split())))
        if self._language == "de":
            return _respell(transcribe(spell_out(text), "de"), _GERMAN | _LETTERS)
        return _respell(transcribe(text, _READER.get(self._language, self._language)), _LETTERS)

    def _synthesise(self, phonemes: str, speed: float) -> Samples:
        tokens = [self._vocabulary[letter] for letter in phonemes if letter in self._vocabulary]
        if not tokens:
            return np.zeros(0, np.float32)
        (sound,) = self._network.run(
            None,
            {
                "input_ids": np.array([[0, *tokens, 0]], np.int64),
                "style": self._style(len(tokens))[None],
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

    def _style(self, length: int) -> Samples:
        """The style vector for a phrase of so many phonemes."""
        tables = [_styles(self._folder / "voices" / f"{n}.bin") for n in self._speaker.split("+")]
        mean: Samples = np.mean([table[min(length, len(table) - 1)] for table in tables], axis=0)
        return mean

    @property
    def _english(self) -> Any:
        return _reader(self._speaker.startswith("b"))


def _respell(phonemes: str, letters: dict[str, str]) -> str:
    for sound, letter in letters.items():
        phonemes = phonemes.replace(sound, letter)
    return phonemes


@cache
def _network(folder: Path) -> Any:
    """One network for all speakers."""
    return load_network(folder / "model.onnx")


@cache
def _styles(path: Path) -> Samples:
    """A speaker's vector for every length of a phrase: [phonemes, 256]."""
    return np.fromfile(path, np.float32).reshape(-1, 256)


@cache
def _reader(british: bool) -> Any:
    from hibari.g2p import G2P

    return G2P(british=british)


def languages() -> tuple[str, ...]:
    return tuple(_SPEAKER_OF)


def missing(language: str) -> str | None:
    """What has to be done before Kokoro can speak a language."""
    if at_hand(MODEL) is None:
        return "run: dragoman models get kokoro"
    return None if language == "en" else espeak.missing(language)


def draw(language: str, random: np.random.Generator) -> str:
    """Somebody for an utterance of a corpus: half of the time a speaker of the language, else one
    blended with any other, who may bring an accent."""
    folder = get(MODEL)
    speaker = str(random.choice(_able(language, folder)))
    return speaker if random.random() < 0.5 else f"{speaker}+{random.choice(_known(folder))}"


@cache
def _known(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (folder / "voices").glob("*.bin")))


def _able(language: str, folder: Path) -> tuple[str, ...]:
    return tuple(n for n in _known(folder) if n[0] in _INITIALS[language])


def _check(speaker: str, language: str, folder: Path) -> str:
    """The speaker, if there is one of that name for that language; blended with anybody."""
    first, *others = speaker.split("+")
    able, known = _able(language, folder), _known(folder)
    strangers = [name for name in others if name not in known]
    if strangers:
        raise DragomanError(f"Kokoro has no '{strangers[0]}'; it has {', '.join(known)}.")
    if first not in able:
        problem = "does not speak" if first in known else "is no speaker of"
        raise DragomanError(
            f"Kokoro's '{first}' {problem} '{language}'; choose one of {', '.join(able)}."
        )
    return speaker
