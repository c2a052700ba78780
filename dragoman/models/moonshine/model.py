"""Moonshine as a simultaneous model: it writes down English, and its cost follows the sound.

Like Whisper it is asked again and again about the window of sound that is still open, and goes on
from what was said of it; unlike Whisper, it needs no silence behind the sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.models.base import Ask, Draft, Feature, Stream
from dragoman.models.choose import with_translator
from dragoman.models.guard import understood
from dragoman.models.life import WindowModel
from dragoman.models.moonshine.engine import Engine, load_engine
from dragoman.models.moonshine.stream import MoonshineStream
from dragoman.models.moonshine.units import START, MoonshineUnits
from dragoman.models.options import Options
from dragoman.models.search import Found, Prompt
from dragoman.models.window import Bounds, Window
from dragoman.models.words import Units

# Short ones, and little is kept where no sentence ended: told many words without a full stop, it
# goes on without.
BOUNDS = Bounds(long=8_000, too_long=12_000, kept=2_000, full=24_000)
SPARE = 10
LANGUAGE = "en"
STALLED = 1  # tokens before which a text does not end, where the net was silent too long
EDGE = 2  # newest tokens of a draft, which nobody is sure of: half of their sound is yet to come


class MoonshineModel(WindowModel[MoonshineStream]):
    """Loaded once, shared by all its streams."""

    stream_type = MoonshineStream
    features = frozenset({Feature.ATTENTION})
    hears: tuple[str, ...] = (LANGUAGE,)
    speaks: tuple[str, ...] = (LANGUAGE,)
    per_second = 7.0  # a window holds at most so many tokens a second, and SPARE
    keeps_past = True  # what was computed of a text that is final: it was heard long ago
    draft_beams = 3  # what is misheard now may have been translated before it is mended

    def __init__(self, name: str, engine: Engine, units: Units, *, beams: int = 5) -> None:
        self.name = name
        self._engine = engine
        self._units = units
        self._beams = beams

    @classmethod
    def load(cls, folder: Path, name: str, options: Options) -> MoonshineModel:
        units = MoonshineUnits.load(folder / "tokenizer.json")
        return cls(name, load_engine(folder, units, options), units, beams=options.beams)

    @property
    def device(self) -> str:
        """Where it works: cpu or cuda."""
        return self._engine.device

    def open(self, source: str | None, target: str, *, transcript: bool = False) -> MoonshineStream:
        if source not in (None, LANGUAGE):
            raise DragomanError(
                f"Model '{self.name}' hears English only, not '{source}'; "
                "a Whisper model hears about a hundred languages."
            )
        if target != LANGUAGE:
            raise DragomanError(
                f"Model '{self.name}' writes down English and cannot translate it into '{target}'.",
                advice="put a translator behind it: "
                f"{with_translator(self.name, LANGUAGE, target)}.",
            )
        window = Window(BOUNDS, self._units)
        return MoonshineStream(target, window, LANGUAGE, states=self._engine.new())

    def start(self, target: str) -> int:
        """The token that a text in a language begins with."""
        return START

    def encode(self, streams: Sequence[MoonshineStream], closing: Sequence[bool]) -> None:
        found = [s.to_encode(closing=over) for s, over in zip(streams, closing, strict=True)]
        new = [(stream, *one) for stream, one in zip(streams, found, strict=True) if one]
        states = self._engine.encode([window for _, window, _ in new], [sound for *_, sound in new])
        for (stream, *_), made in zip(new, states, strict=True):
            stream.encoded(made)

    def speak(self, streams: Sequence[MoonshineStream], asks: Sequence[Ask]) -> list[Found]:
        """A draft reads the one before in a single pass, as far as it is still likely, and what was
        said not at all. What is final is searched with all beams, and read anew."""
        groups: dict[tuple[bool, int], list[int]] = {}
        for index, ask in enumerate(asks):
            groups.setdefault((ask.final, self._beams_for(ask)), []).append(index)
        found: dict[int, Found] = {}
        for (final, beams), members in groups.items():
            chosen = [streams[index] for index in members]
            prompts = [self._prompt(streams[index], asks[index]) for index in members]
            keeps = self.keeps_past and not final
            pasts = [stream.past for stream in chosen] if keeps else None
            spoken = self._engine.speak([s.states for s in chosen], prompts, beams, pasts)
            for stream, one in zip(chosen, spoken, strict=True):
                stream.keep(one.past)
            found |= zip(members, spoken, strict=True)
        return [found[index] for index in range(len(streams))]

    def speak_part(self, stream: MoonshineStream) -> tuple[Found, float]:
        """The part is encoded for itself: states that heard what follows would lead beyond it."""
        end_ms = stream.quiet_ms()
        part = self._engine.encode([stream.states.anew()], [stream.until(end_ms)])
        prompt = self._prompt(stream, Ask(final=True))
        found = self._engine.speak(part, [prompt], self._beams)[0]
        return self._if_understood(stream, found, final=True), end_ms

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        self._own(stream).trust(draft.log_probs[:tokens])
        super().commit(stream, draft, tokens, closed)

    def _finished(self, stream: MoonshineStream, found: Found, ask: Ask) -> Draft:
        return super()._finished(stream, self._if_understood(stream, found, final=ask.final), ask)

    def _if_understood(self, stream: MoonshineStream, found: Found, *, final: bool) -> Found:
        """What was found, or nothing if another language may be spoken."""
        if stream.stalled and not final and not understood(found.log_probs, final=False):
            return Found(ended=True)  # it was made to speak, and does not know what to say
        known = found.log_probs if final else found.log_probs[:-EDGE]
        foreign = stream.foreign
        good = understood((*stream.sureness, *known), final=final, foreign=foreign)
        if known:
            stream.language = None if foreign and not good else stream.expected
        stream.doubted = () if good else known
        return found if good else Found()

    def _beams_for(self, ask: Ask) -> int:
        if ask.hasty:
            return 1
        return self._beams if ask.final else min(self._beams, self.draft_beams)

    def _prompt(self, stream: MoonshineStream, ask: Ask) -> Prompt:
        window = stream.window
        seconds = (stream.heard_ms - stream.start_ms) / 1000.0
        most = SPARE + int(self.per_second * seconds) - len(window.said)
        if ask.max_tokens is not None:
            most = min(most, ask.max_tokens - len(window.settled.tokens))
        free = ask.final and self._beams_for(ask) > 1
        guess = () if free else window.rest.tokens[len(window.settled.tokens) :]
        return Prompt(
            start=(self.start(stream.target),),
            most=max(0, most),
            said=tuple(window.said),
            guess=guess[: max(0, most - 1)],
            avoid_end=ask.avoid_end,
            least=min(self._least(stream, ask), max(0, most)),
        )

    def _least(self, stream: MoonshineStream, ask: Ask) -> int:
        """Tokens before which a text does not end: after silence a net may hear nobody, however
        long somebody has been speaking since."""
        return STALLED if stream.stalled and not stream.window.said and not ask.final else 0
