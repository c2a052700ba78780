"""What happens in a talk, as the Python interface tells it: one small class per kind of event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.interpreter import Update
from dragoman.lag import lived_ms

PAUSE_MS = 800.0
"""A silence this long is a pause."""
UNHEARD_MS = 50.0
"""Of the newest sound so much may not have been listened to yet: ears hear in windows."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. Times are milliseconds since the talk began."""

    heard_ms: float
    """Sound heard until then."""
    at_ms: float
    """When it was known."""


@dataclass(frozen=True, slots=True)
class Said(Event):
    """Words of the translation that are final, with their spacing: joined they are the text."""

    text: str
    lag_ms: float | None = None
    """How far behind the speaker they are, computation included; None if the model cannot tell."""


@dataclass(frozen=True, slots=True)
class Interim(Event):
    """What will probably be said next. It replaces the interim text before it; '' takes it away."""

    text: str


@dataclass(frozen=True, slots=True)
class Transcript(Event):
    """Words of the speaker that are final, where the model writes them down."""

    text: str
    language: str | None = None
    """That they are in: the speaker's, or English where the model translates by way of it."""


@dataclass(frozen=True, slots=True)
class Pause(Event):
    """The speaker is silent."""

    silence_ms: float


@dataclass(frozen=True, slots=True)
class End(Event):
    """The talk is over and all is said."""

    language: str | None = None
    """The language that was spoken, given or detected."""


class Events:
    """Turns the updates of one interpreter into events."""

    def __init__(self) -> None:
        self._interim = ""
        self._paused = True  # before the first word nobody pauses

    def of(self, update: Update, last: bool) -> Iterator[Event]:
        """The events of an update: transcript, said, interim, pause, end, each if there is one."""
        when = (update.hearing.audio_ms, update.hearing.end_ms)
        if update.transcript:
            yield Transcript(*when, "".join(update.transcript), update.transcript_language)
        if update.said:
            yield Said(*when, "".join(update.said), lived_ms(update))
        if update.interim != self._interim:
            self._interim = update.interim
            yield Interim(*when, update.interim)
        if update.silence_ms < PAUSE_MS:
            self._paused = False
        elif not self._paused:
            self._paused = True
            if update.silence_ms < update.hearing.audio_ms - UNHEARD_MS:  # somebody has spoken
                yield Pause(*when, update.silence_ms)
        if last:
            yield End(*when, update.language)
