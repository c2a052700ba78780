"""The voices there are, and the choice of one for a language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragoman.errors import DragomanError, either
from dragoman.voices import dittli, elevenlabs, espeak, kokoro, piper
from dragoman.voices.base import Voice


@dataclass(frozen=True, slots=True)
class Offer:
    """A voice as the list shows it: all that can be told without loading it."""

    about: str
    licence: str
    languages: Callable[[], tuple[str, ...]]
    missing: Callable[[str], str | None]
    """What has to be done before it can speak a language; None when it is ready."""
    open: Callable[[str, str | None], Voice]
    """The voice for a language, and one of its speakers: the part of the name after a colon.

    Weights that are not here are fetched. What else is missing is a DragomanError.
    """
    local: bool = True
    """Whether the text stays on this machine; a voice that sends it away is never a default."""
    alone: bool = False
    """Whether it is the voice of one speaker, who has no name."""
    draw: Callable[[str, np.random.Generator], str] | None = None
    """Somebody to speak one utterance of a corpus, where there are several."""


def _hibari(language: str, speaker: str | None) -> Voice:
    from dragoman.voices.hibari import HibariVoice

    return HibariVoice()


VOICES: dict[str, Offer] = {
    "hibari": Offer(
        "American, female",
        "Apache-2.0",
        lambda: ("en",),
        lambda language: None,
        _hibari,
        alone=True,
    ),
    "dittli-de": Offer(
        "German, male",
        "Apache-2.0",
        lambda: ("de",),
        dittli.missing,
        lambda language, speaker: dittli.DittliVoice(),
        alone=True,
    ),
    "kokoro": Offer(
        "natural, 41 speakers",
        "Apache-2.0",
        kokoro.languages,
        kokoro.missing,
        kokoro.KokoroVoice,
        draw=kokoro.draw,
    ),
    "piper-en_US-joe": Offer(
        "American, male",
        "CC0-1.0",
        lambda: ("en",),
        lambda language: piper.missing("piper-en_US-joe"),
        lambda language, speaker: piper.from_store("piper-en_US-joe"),
        alone=True,
    ),
    "espeak": Offer(
        "robotic",
        "GPL-3.0",
        espeak.languages,
        espeak.missing,
        espeak.EspeakVoice,
    ),
    "elevenlabs": Offer(
        "cloud service",
        "their terms",
        lambda: elevenlabs.LANGUAGES,
        elevenlabs.missing,
        elevenlabs.ElevenLabsVoice,
        local=False,
    ),
}
"""Best first: without a name, the first that has the language and is ready is taken.

Dittli stands before Kokoro although less of it is understood: it keeps up with a live talk on any
machine, and Kokoro needs a core to itself."""


def open_voice(name: str | None, language: str) -> Voice:
    """The voice of a name, or the best one that is ready, to speak a language.

    `name` is one of `VOICES`, with a colon and one of its speakers where it has several
    (`kokoro:af_bella`, `espeak:en-gb+f3`), or the path of a Piper voice (`anna.onnx`).
    """
    if name is None:
        return _best_for(language)
    check_name(name)
    if _is_file(name):
        return _from_file(name, language)
    kind, _, speaker = name.partition(":")
    offer = VOICES[kind]
    _check(kind, offer, language)
    return offer.open(language, speaker or None)


def check_name(name: str) -> None:
    """Refuse the name of a voice that there is not, whatever it shall speak."""
    if _is_file(name):
        return
    kind, _, speaker = name.partition(":")
    if kind not in VOICES:
        raise DragomanError(
            f"There is no voice '{name}'; there are {', '.join(VOICES)}, and the paths of Piper "
            "voices (.onnx)."
        )
    if speaker and VOICES[kind].alone:
        raise DragomanError(f"The voice {kind} has no speaker '{speaker}'; it has only one.")


def _is_file(name: str) -> bool:
    return ".onnx" in name


def _best_for(language: str) -> Voice:
    wishes = []
    for name, offer in VOICES.items():
        languages = offer.languages()  # none: not known before it is installed
        if languages and language not in languages:
            continue
        wish = offer.missing(language)
        if wish is None and offer.local:
            return offer.open(language, None)
        wishes.append(f"{name}: {wish or 'ask for it by name'}")
    if not wishes:
        raise DragomanError(
            f"No voice speaks '{language}'.", advice="'dragoman voices' lists them all."
        )
    raise DragomanError(f"No voice for '{language}' is ready.", advice=f"({'; or '.join(wishes)}).")


def _check(name: str, offer: Offer, language: str) -> None:
    languages = offer.languages()
    if not languages:
        raise DragomanError(
            f"The voice '{name}' is not ready.", advice=f"{offer.missing(language)}."
        )
    if language not in languages:
        raise DragomanError(
            f"The voice '{name}' does not speak '{language}'; {_instead(language)}."
        )


def _instead(language: str) -> str:
    others = [name for name, offer in VOICES.items() if language in offer.languages()]
    return f"choose {either(others)}" if others else "no other voice has it"


def _from_file(name: str, language: str) -> Voice:
    """A Piper voice from a file, and one of its speakers after a colon."""
    path, _, speaker = name.partition(".onnx")
    voice = piper.PiperVoice(Path(f"{path}.onnx"), name, speaker.removeprefix(":") or None)
    if language not in voice.languages:
        speaks = ", ".join(voice.languages)
        raise DragomanError(
            f"The voice {name} speaks '{speaks}', not '{language}'; {_instead(language)}."
        )
    return voice
