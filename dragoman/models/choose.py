"""Which model interprets between two languages, where nobody names one.

Whisper translates into English and writes down what it hears. Into any other language it does that
before a text translator: of those in the catalogue, the first that is on this machine. Where none
reads what is spoken, or nobody has said what that is, Whisper translates it into English for one
that reads that. (Of English, Moonshine hears clear voices for three quarters of the work; it
mishears far more of what people say whose language it is not: `results/cascade.md`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.store.catalogue import Model as Entry

AUTO = "auto"
PIVOT = "en"  # the language into which recognisers translate
WHISPER, LIGHTER = "whisper-base", "moonshine-base"  # the second hears English alone


def choose(source: str | None, target: str) -> str:
    """The name of the model for a pair of languages."""
    if target in ("en", source):
        return WHISPER
    fitting, through = _translators(source, target), _through(source, target)
    if here := _first_here([*fitting, *through]):
        return f"{WHISPER}+{here.name}"
    if source is None:
        raise _unknown(target, through)
    raise _nothing(source, target, fitting, through)


def with_translator(
    recogniser: str, source: str | None, target: str, *, pivots: bool = False
) -> str:
    """What puts a translator behind a recogniser: one that is here, or else one that can be had.
    A recogniser that `pivots` may translate into English for it."""
    fitting, through = _translators(source, target), _through(source, target) if pivots else []
    best = _first_here(fitting) or _first_here(through) or next(iter([*fitting, *through]), None)
    return f"--model {recogniser}+{best.name if best else 'TRANSLATOR'}"


def lighter(model: str, source: str | None) -> str | None:
    """A cascade that hears English for less work than this one, if there is one."""
    recogniser, plus, translator = model.partition("+")
    return f"{LIGHTER}+{translator}" if plus and recogniser == WHISPER and source == "en" else None


def with_pivot(source: str, translator: str) -> str:
    """What puts a recogniser before a translator that reads English, whatever is spoken; nothing
    if that does not hear it either."""
    from dragoman.store import catalogue

    if source not in catalogue.model(WHISPER).languages:
        return ""
    return f"go by way of English: --model {WHISPER}+{translator}."


def with_recogniser(translator: str) -> str:
    """What puts a recogniser before a translator of text."""
    return f"--model {WHISPER}+{translator}"


def _translators(source: str | None, target: str) -> list[Entry]:
    """Who translates everything is larger, and no better, than who was made for the pair."""
    if source is None:
        return []
    return sorted(_fitting(source, target), key=lambda entry: entry.languages == ("mul",))


def _through(source: str | None, target: str) -> list[Entry]:
    """Who goes on from English, of those that need not be told that they read it."""
    if source == PIVOT:
        return []
    return [one for one in _translators(PIVOT, target) if one.languages == (PIVOT,)]


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


def _unknown(target: str, through: Sequence[Entry]) -> DragomanError:
    return DragomanError(
        f"To translate into '{target}', it has to be known which language is spoken (into "
        "English, it may be found out).",
        advice=", or ".join(["say it with --from", *to_get([], through)]) + ".",
    )


def _nothing(
    source: str, target: str, fitting: Sequence[Entry], through: Sequence[Entry]
) -> DragomanError:
    pair = f"Nothing here translates from '{source}' into '{target}'"
    if not (fitting or through):
        return DragomanError(
            f"{pair}, nor does anything in the catalogue.",
            advice="give a recogniser and a translator of your own with --model RECOGNISER+FOLDER.",
        )
    return DragomanError(f"{pair} yet.", advice=", or ".join(to_get(fitting, through)) + ".")


def to_get(fitting: Sequence[Entry], through: Sequence[Entry]) -> Iterator[str]:
    """How the first translator of each kind is got: for a pair of languages, and from English."""
    for kind, entries in (("", fitting), (" that goes on from English", through)):
        for entry in entries[:1]:
            where = ", typed in a clone of Dragoman, which it comes with" if entry.ships else ""
            yield f"get a translator{kind} with 'dragoman models get {entry.name}'{where}"
