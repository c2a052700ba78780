"""The voices there are, and the choice of one for a language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.voices import espeak
from dragoman.voices.base import Voice


@dataclass(frozen=True, slots=True)
class Offer:
    """A voice as the list shows it: all that can be told without loading it."""

    about: str
    licence: str
    languages: Callable[[], tuple[str, ...]]
    missing: Callable[[], str | None]
    """What has to be done before it can speak; None when it is ready."""
    open: Callable[[str, str | None], Voice]
    """The voice for a language, and one of its speakers: the part of the name after a colon."""


def _hibari(language: str, speaker: str | None) -> Voice:
    from dragoman.voices.hibari import HibariVoice

    return HibariVoice()


VOICES: dict[str, Offer] = {
    "hibari": Offer(
        "American English, female, neural; a fiftieth of a core",
        "Apache-2.0",
        lambda: ("en",),
        lambda: None,
        _hibari,
    ),
    "espeak": Offer(
        "eSpeak NG: robotic, clear, over a hundred languages; in a process of its own",
        "GPL-3.0",
        espeak.languages,
        espeak.missing,
        espeak.EspeakVoice,
    ),
}
"""Best first: without a name, the first that has the language and is ready is taken."""


def open_voice(name: str | None, language: str) -> Voice:
    """The voice of a name, or the best one that is ready, to speak a language.

    `name` is `hibari`, `espeak`, `kokoro`, `elevenlabs`, with `:` and one of its speakers where it
    has several (`kokoro:af_heart`), or the path of a Piper voice.
    """
    if name is None:
        return _best_for(language)
    kind, _, speaker = name.partition(":")
    offer = VOICES.get(kind)
    if offer is None:
        raise DragomanError(f"There is no voice '{name}'; there are {', '.join(VOICES)}.")
    return _open(kind, offer, language, speaker or None)


def _best_for(language: str) -> Voice:
    able = {name: offer for name, offer in VOICES.items() if language in offer.languages()}
    for name, offer in able.items():
        if offer.missing() is None:
            return _open(name, offer, language, None)
    if not able:
        raise DragomanError(f"No voice speaks '{language}'; run 'dragoman voices' to see them all.")
    raise DragomanError(f"No voice for '{language}' is ready: {_wishes(able)}.")


def _open(name: str, offer: Offer, language: str, speaker: str | None) -> Voice:
    if language not in offer.languages():
        others = [other for other, o in VOICES.items() if language in o.languages()]
        hint = f"choose {' or '.join(others)}" if others else "no other voice has it"
        raise DragomanError(f"The voice '{name}' does not speak '{language}'; {hint}.")
    wish = offer.missing()
    if wish is not None:
        raise DragomanError(f"The voice '{name}' is not ready: {wish}.")
    return offer.open(language, speaker)


def _wishes(offers: dict[str, Offer]) -> str:
    return "; or ".join(f"{name}: {offer.missing()}" for name, offer in offers.items())
