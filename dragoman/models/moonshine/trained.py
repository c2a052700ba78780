"""A net of the workshop in Moonshine's shape: it hears speech and writes a translation.

    dragoman.json   kind, languages, units, whose encoder it has
    model.bin       the decoder's weights, and the encoder's where it is its own
    target.model, source.model   the units

An encoder that training left as it was is not in the folder: it is the store's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from dragoman.errors import DragomanError
from dragoman.models.base import Ask, Feature
from dragoman.models.exported.config import Languages
from dragoman.models.exported.counting import Evidence, WordCounter
from dragoman.models.exported.net import BOS, EOS, PAD
from dragoman.models.exported.pieces import Pieces
from dragoman.models.graphs import Graphs
from dragoman.models.kind import FILE, first_file, read_settings, write_settings
from dragoman.models.moonshine.encoder import OPEN, Labels, Pace
from dragoman.models.moonshine.engine import (
    CTC,
    ENCODERS,
    Engine,
    MoonshineEngine,
    MoonshineRules,
)
from dragoman.models.moonshine.model import BOUNDS, MoonshineModel
from dragoman.models.moonshine.stream import MoonshineStream
from dragoman.models.moonshine.weights import Arrays, encoder_arrays, positions, wider
from dragoman.models.options import Options
from dragoman.models.search import Found
from dragoman.models.whisper.weights import Weights
from dragoman.models.window import Window

KIND = "moonshine-net"
WEIGHTS = "model.bin"
UNTOLD = 4  # words that were heard and not told, with which a text is not over,
GOES_ON = 3  # but goes on by so many tokens
# Nothing longer than this was learned from.
NET_BOUNDS = replace(BOUNDS, full=20_000)


@dataclass(frozen=True, slots=True)
class Settings:
    """What `dragoman.json` says."""

    target_units: int
    source_units: int
    languages: Languages
    tags: dict[str, int]  # the unit that a translation begins with, by language; none: BOS
    encoder: str = ""  # the model of the store whose encoder it has; none: its own
    suffix: bool = False  # in target units the space comes at a word's end
    source_suffix: bool = False
    precision: Literal["float32", "int8"] = "int8"
    chunk: int = 0  # states that its encoder was trained to make at a time; 0: all of them
    ahead: int = OPEN  # states behind those that it looks at
    kind: str = KIND

    @property
    def decides(self) -> str:
        """Whether it decides for itself when to write."""
        return "no"

    def write(self, folder: Path) -> None:
        write_settings(folder / FILE, self)

    @classmethod
    def read(cls, folder: Path) -> Settings:
        return read_settings(folder / FILE, cls, "a net in Moonshine's shape")


class TrainedMoonshine(MoonshineModel):
    """Loaded once, shared by all its streams."""

    per_second = 10.0
    keeps_past = False  # a translation is said early, and then read with what is heard since
    draft_beams = 1  # more were not tried

    def __init__(
        self,
        name: str,
        engine: Engine,
        settings: Settings,
        units: dict[str, Pieces],
        words_in: Callable[[Labels], int] | None = None,
        *,
        beams: int = 5,
    ) -> None:
        """`units` by language ("": of any); `words_in` counts the words that a CTC head hears."""
        super().__init__(name, engine, next(iter(units.values())), beams=beams)
        self._settings, self._by_language = settings, units
        self._words_in = words_in
        self.hears = tuple(filter(None, [settings.languages.source]))
        self.speaks = settings.languages.targets
        if words_in is not None:
            self.features = self.features | {Feature.CTC}

    @classmethod
    def load(cls, folder: Path, name: str, options: Options) -> TrainedMoonshine:
        settings = Settings.read(folder)
        weights = Weights(folder / WEIGHTS)
        options = options.on_cpu("A net of the workshop in Moonshine's shape")
        return cls.of(folder, name, settings, weights, options)

    @classmethod
    def of(
        cls, folder: Path, name: str, settings: Settings, weights: Weights, options: Options
    ) -> TrainedMoonshine:
        """Of weights in memory; the folder has the units."""
        engine = engine_of(folder, settings, weights, threads=options.threads)
        codes = settings.languages.targets or ("",)
        units = {code: Pieces.of_target(folder, settings, code) for code in codes}
        count = counting(folder, settings) if CTC in weights else None
        return cls(name, engine, settings, units, count, beams=options.beams)

    def open(self, source: str | None, target: str, *, transcript: bool = False) -> MoonshineStream:
        known = self._settings.languages
        known.refuse_others(self.name, source, target)
        units = self._by_language.get(target) or self._by_language[""]
        window, heard = Window(NET_BOUNDS, units), source or known.source or None
        stream = MoonshineStream(target, window, heard, states=self._engine.new())
        if self._words_in is not None:
            stream.words_in = self._words_in
        return stream

    def _if_understood(self, stream: MoonshineStream, found: Found, *, final: bool) -> Found:
        """How sure a translation is says little about what is spoken, since there are many ways to
        put a thing: the states alone tell whether it is another language."""
        foreign = stream.foreign
        stream.language = None if foreign else stream.expected
        stream.doubted = tuple(found.log_probs) if foreign else ()
        return Found() if foreign else found

    def start(self, target: str) -> int:
        return self._settings.tags.get(target, BOS)

    def _least(self, stream: MoonshineStream, ask: Ask) -> int:
        """Where words were heard that nobody has told, the text goes on: told how it begins, a net
        may take it for the whole, whatever else is said."""
        return GOES_ON if self._words_in is not None and stream.untold >= UNTOLD else 0


def engine_of(
    folder: Path, settings: Settings, weights: Weights, *, threads: int
) -> MoonshineEngine:
    """The engine of a net whose encoder is its own, or the store's."""
    graphs, of_encoder = Graphs(folder, threads), None
    arrays = whole(weights)
    if settings.encoder:
        from dragoman.store import get

        place = get(settings.encoder)
        path = first_file(place, ENCODERS)
        if path is None:
            raise DragomanError(
                f"{folder} needs the encoder of '{settings.encoder}', which {place} lacks."
            )
        arrays |= encoder_arrays(path)
        of_encoder = Graphs(place, threads)
    never = [PAD, BOS, *settings.tags.values()]
    rules = MoonshineRules(settings.target_units, end=EOS, no_speech=EOS, never=never, not_first=[])
    exact = settings.precision == "float32"
    whole_weights = Weights(weights.path, arrays)
    pace = Pace(settings.ahead, settings.chunk)
    return MoonshineEngine(
        whole_weights, rules, graphs, of_encoder=of_encoder, pace=pace, exact=exact
    )


def whole(weights: Weights) -> Arrays:
    """All that Moonshine's decoder reads: tokens are embedded by the matrix that chooses them, and
    positions follow from their angles."""
    arrays = {name: weights.stored(name) for name in weights}
    table, angles = arrays["decoder/projection/weight"], weights.array("decoder/angles")
    arrays["decoder/embeddings/weight"] = wider(table, 2 * len(angles))
    if "decoder/projection/weight_scale" in arrays:
        arrays["decoder/embeddings/weight_scale"] = arrays["decoder/projection/weight_scale"]
    arrays["decoder/position_encodings/encodings"] = positions(table.shape[1], angles)
    return arrays


def counting(folder: Path, settings: Settings) -> Callable[[Labels], int]:
    path = folder / "source.model"
    source = Pieces.load(path, settings.source_units, suffix=settings.source_suffix)
    return partial(count_words, source, settings.source_units)


def count_words(source: Pieces, blank: int, labels: Labels) -> int:
    """Words in what a CTC head hears."""
    return WordCounter(source, blank).hear(Evidence(labels)).words
