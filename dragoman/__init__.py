"""Dragoman speaks the translation while the speaker is still talking.

import dragoman
for event in dragoman.translate("talk.mp3", source="de"):
    if isinstance(event, dragoman.Said):
        print(event.text, end="", flush=True)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.api import Talk, Translator
    from dragoman.audio.arrays import Sound
    from dragoman.events import End, Event, Interim, Pause, Said, Transcript
    from dragoman.setup import Setup

__version__ = "0.1.0"

# Imported when they are first used: `dragoman --help` needs none of them.
_LAZY = {
    **dict.fromkeys(("Talk", "Translator", "Sound"), "dragoman.api"),
    **dict.fromkeys(("End", "Event", "Interim", "Pause", "Said", "Transcript"), "dragoman.events"),
    "Setup": "dragoman.setup",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'dragoman' has no attribute '{name}'")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:  # what a notebook offers to whoever types `dragoman.`
    return sorted({*globals(), *_LAZY})


def translate(
    sound: str | Path | Sound | Iterable[Sound], rate: int = 16000, **settings: Any
) -> Iterator[Event]:
    """Translate a file ('-': standard input), an array or pieces of sound, as if spoken now.

    `settings` are those of `dragoman.Translator`: source, target, max_latency, model and so on.
    Without `source` the language is detected.
    """
    from dragoman.api import Translator

    return Translator(**settings).translate(sound, rate)


__all__ = [
    "DragomanError",
    "End",
    "Event",
    "Interim",
    "Pause",
    "Said",
    "Setup",
    "Sound",
    "Talk",
    "Transcript",
    "Translator",
    "translate",
]
