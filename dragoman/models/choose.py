"""Which model interprets between two languages, where nobody names one.

Whisper translates into English and writes down what it hears. Into any other language a recogniser
and a text translator do it together: Moonshine where English is spoken, which hears it as well as
Whisper for a fraction of the work, else Whisper; and of the translators in the catalogue, the first
that is on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.store.catalogue import Model as Entry

AUTO = "auto"
WHISPER = "whisper-base"
RECOGNISERS = {"en": "moonshine-base"}  # of other languages: Whisper


def choose(source: str | None, target: str) -> str:
    """The name of the model for a pair of languages."""
    if target in ("en", source):
        return WHISPER
    if source is None:
        raise DragomanError(
            f"To translate into '{target}', it has to be known which language is spoken (into "
            "English, it may be found out).",
            advice="say it with --from.",
        )
    fitting = _translators(source, target)
    here = _first_here(fitting)
    if here is None:
        raise _nothing(source, target, fitting)
    return f"{RECOGNISERS.get(source, WHISPER)}+{here.name}"


def with_translator(recogniser: str, source: str | None, target: str) -> str:
    """What puts a translator behind a recogniser: one that is here, or else one that can be had."""
    fitting = _translators(source, target) if source else []
    best = _first_here(fitting) or next(iter(fitting), None)
    return f"--model {recogniser}+{best.name if best else 'TRANSLATOR'}"


def with_recogniser(translator: str) -> str:
    """What puts a recogniser before a translator of text."""
    from dragoman.store import catalogue

    known = translator in catalogue.names()
    languages = catalogue.model(translator).languages if known else ()
    recogniser = RECOGNISERS.get(languages[0], WHISPER) if len(languages) == 1 else WHISPER
    return f"--model {recogniser}+{translator}"


def _translators(source: str, target: str) -> list[Entry]:
    """Who translates everything is larger, and no better, than who was made for the pair."""
    return sorted(_fitting(source, target), key=lambda entry: entry.languages == ("mul",))


def _fitting(source: str, target: str) -> Iterator[Entry]:
    from dragoman.store import catalogue

    for name in catalogue.names():
        entry = catalogue.model(name)
        if entry.task != "text translation":
            continue
        reads = source in entry.languages or entry.languages == ("mul",)
        writes = target in entry.targets or entry.languages == ("mul",)
        if reads and writes:
            yield entry


def _first_here(fitting: Sequence[Entry]) -> Entry | None:
    """Fetched already, or in a folder of weights."""
    from dragoman.store import at_hand

    return next((entry for entry in fitting if at_hand(entry.name)), None)


def _nothing(source: str, target: str, fitting: list[Entry]) -> DragomanError:
    pair = f"Nothing here translates from '{source}' into '{target}'"
    if not fitting:
        return DragomanError(
            f"{pair}, nor does anything in the catalogue.",
            advice="give a recogniser and a translator of your own with --model RECOGNISER+FOLDER.",
        )
    where = ", typed in a clone of Dragoman, which it comes with" if fitting[0].ships else ""
    return DragomanError(
        f"{pair} yet.",
        advice=f"get a translator with 'dragoman models get {fitting[0].name}'{where}.",
    )
