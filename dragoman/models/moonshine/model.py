"""Moonshine as a simultaneous model: it writes down English, and its cost follows the sound.

Like Whisper it is asked again and again about the window of sound that is still open, and goes on
from what was said of it; unlike Whisper, it needs no silence behind the sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.models.base import Ask, Feature
from dragoman.models.life import WindowModel
from dragoman.models.moonshine.engine import MoonshineEngine
from dragoman.models.moonshine.stream import MoonshineStream
from dragoman.models.moonshine.units import START, MoonshineUnits
from dragoman.models.options import Options, on_cpu
from dragoman.models.search import Floats, Found, Prompt
from dragoman.models.window import Bounds, Window
from dragoman.models.words import Units

BOUNDS = Bounds(long=10_000, too_long=16_000, kept=5_000, full=24_000)
SPARE, PER_SECOND = 10, 7.0  # a window holds at most so many tokens, and so many more a second
LANGUAGE = "en"


class Engine(Protocol):
    """Every operation takes a batch."""

    def encode(self, sounds: Sequence[Samples]) -> list[Floats]:
        """Encode windows of equal length together."""

    def speak(self, states: Sequence[Floats], prompts: Sequence[Prompt], beams: int) -> list[Found]:
        """Continue every prompt."""


class MoonshineModel(WindowModel[MoonshineStream]):
    """Loaded once, shared by all its streams."""

    stream_type = MoonshineStream
    features = frozenset({Feature.ATTENTION})
    hears = speaks = (LANGUAGE,)

    def __init__(self, name: str, engine: Engine, units: Units, *, beams: int = 5) -> None:
        self.name = name
        self._engine = engine
        self._units = units
        self._beams = beams

    @classmethod
    def load(cls, folder: Path, name: str, options: Options) -> MoonshineModel:
        on_cpu(options, "Moonshine")
        units = MoonshineUnits.load(folder / "tokenizer.json")
        engine = MoonshineEngine(folder, units, threads=options.threads)
        return cls(name, engine, units, beams=options.beams)

    def open(self, source: str | None, target: str, *, transcript: bool = False) -> MoonshineStream:
        if source not in (None, LANGUAGE):
            raise DragomanError(
                f"Model '{self.name}' hears English only, not '{source}'; "
                "a Whisper model hears about a hundred languages."
            )
        if target != LANGUAGE:
            raise DragomanError(
                f"Model '{self.name}' writes down English and cannot translate it into '{target}'; "
                f"put a translator behind it: --model {self.name}+TRANSLATOR."
            )
        return MoonshineStream(target, Window(BOUNDS, self._units), LANGUAGE)

    def encode(self, streams: Sequence[MoonshineStream], closing: Sequence[bool]) -> None:
        """Encode the windows that have new sound; windows of equal length go together."""
        groups: dict[int, list[MoonshineStream]] = {}
        for stream in streams:
            if not stream.nothing_new():
                groups.setdefault(len(stream.samples), []).append(stream)
        for group in groups.values():
            states = self._engine.encode([stream.samples for stream in group])
            for stream, seen in zip(group, states, strict=True):
                stream.encoded(seen)

    def speak(self, streams: Sequence[MoonshineStream], asks: Sequence[Ask]) -> list[Found]:
        prompts = [self._prompt(s, ask) for s, ask in zip(streams, asks, strict=True)]
        beams = 1 if all(ask.hasty for ask in asks) else self._beams
        return self._engine.speak([_states(stream) for stream in streams], prompts, beams)

    def speak_part(self, stream: MoonshineStream) -> tuple[Found, float]:
        end_ms = stream.quiet_ms()
        states = self._engine.encode([stream.until(end_ms)])
        prompt = self._prompt(stream, Ask(final=True))
        return self._engine.speak(states, [prompt], self._beams)[0], end_ms

    def _prompt(self, stream: MoonshineStream, ask: Ask) -> Prompt:
        window = stream.window
        seconds = (stream.heard_ms - stream.start_ms) / 1000.0
        most = SPARE + int(PER_SECOND * seconds) - len(window.said)
        if ask.max_tokens is not None:
            most = min(most, ask.max_tokens - len(window.settled.tokens))
        guess = window.rest.tokens[len(window.settled.tokens) :] if self._beams == 1 else ()
        return Prompt(
            start=(START,),
            most=max(0, most),
            said=tuple(window.said),
            guess=guess[: max(0, most - 1)],
            avoid_end=ask.avoid_end,
        )


def _states(stream: MoonshineStream) -> Floats:
    assert stream.states is not None
    return stream.states
