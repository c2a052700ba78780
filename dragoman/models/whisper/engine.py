"""The network behind a small interface, so that tests can put another in its place.

Both halves are graphs of ours, run by onnxruntime: an encoder that keeps what it made of older
sound, and a decoder that tells where it looks.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from dragoman.errors import DragomanError
from dragoman.models.graphs import Graphs
from dragoman.models.kind import read_settings
from dragoman.models.options import Options
from dragoman.models.search import Found, Prompt
from dragoman.models.whisper.alignment import Head, alignment_heads
from dragoman.models.whisper.decoder import Decoder, Rules
from dragoman.models.whisper.encoder import Encoded, Encoder
from dragoman.models.whisper.graph import Shape
from dragoman.models.whisper.mel import Frames, LogMel
from dragoman.models.whisper.tokens import Vocabulary
from dragoman.models.whisper.weights import Weights

RELEASE_EVERY = 1.0  # seconds
_released = 0.0  # when that was done last

S = TypeVar("S")  # what an engine makes of a window: nobody else looks into it


@dataclass(frozen=True, slots=True)
class View(Generic[S]):
    """A window, as it is given to the encoder."""

    # What the stream's mel made of it: here `[bands, frames]`, an even number of them, silence
    # behind the sound included.
    mel: Any
    sound: int | None = None  # states of sound; all by default
    before: S | None = None  # what was made of the window when it was last renewed
    renew: bool = True  # its last seconds again, or all of it; else what is new
    plain: bool = False  # and all of the silence, as the net was made for


class Engine(Protocol[S]):
    """Every operation takes a batch."""

    @property
    def bands(self) -> int:
        """Mel bands that the encoder wants."""

    @property
    def device(self) -> str:
        """Where it works: cpu or cuda."""

    @property
    def copies(self) -> bool:
        """Whether it writes down what it hears and never learnt to translate."""

    def new_mel(self) -> Frames:
        """The log-mel frames of a new stream; its windows are for `encode` alone."""

    def encode(self, views: Sequence[View[S]]) -> list[S]:
        """Encode windows, of any length."""

    def languages(self, states: Sequence[S]) -> list[dict[str, float]]:
        """The probability of every language code."""

    def speak(self, states: Sequence[S], prompts: Sequence[Prompt], beams: int) -> list[Found]:
        """Continue every prompt."""


@dataclass(frozen=True, slots=True)
class Config:
    """What `config.json` says of a Whisper in CTranslate2's format; null: nothing."""

    suppress_ids: list[int] | None  # tokens that are never made,
    suppress_ids_begin: list[int] | None  # and those that are not made first
    alignment_heads: list[Head] | None = None

    @classmethod
    def read(cls, folder: Path) -> Config:
        return read_settings(folder / "config.json", cls, "the settings of a Whisper model")

    def checked(self, weights: Weights, vocabulary: Vocabulary) -> Config:
        """The same, of files that belong to one model."""
        words, listed = Shape.of(weights).words, len(vocabulary.names)
        if words != listed:
            raise DragomanError(
                f"The vocabulary beside {weights.path} has {listed} tokens and the net {words}: "
                "they are of two models; get or convert the model again."
            )
        if outside := [one for one in (*self.never, *self.not_first) if not 0 <= one < words]:
            raise DragomanError(
                f"The config.json beside {weights.path} names token {outside[0]}, and there are "
                f"{words}: it is another model's; get or convert the model again."
            )
        return self

    @property
    def never(self) -> list[int]:
        return self.suppress_ids or []

    @property
    def not_first(self) -> list[int]:
        return self.suppress_ids_begin or []

    def heads(self, shape: Shape) -> list[Head]:
        """The decoder's heads that tell where it looks."""
        return alignment_heads(
            self.alignment_heads, layers=shape.layers, heads=shape.heads, words=shape.words
        )


class WhisperEngine:
    """Loaded from a folder in CTranslate2's format."""

    device = "cpu"

    def __init__(self, folder: Path, vocabulary: Vocabulary, options: Options) -> None:
        weights = Weights(folder / "model.bin")
        config, shape = Config.read(folder).checked(weights, vocabulary), Shape.of(weights)
        rules = Rules(
            shape.words,
            end=vocabulary.end,
            no_speech=vocabulary.no_speech,
            never=[*config.never, *vocabulary.times],
            not_first=config.not_first,
        )
        exact = options.compute != "int8"
        graphs = Graphs(folder, options.threads)
        self.decoder = Decoder(weights, rules, config.heads(shape), graphs, exact=exact)
        self.encoder = Encoder(weights, graphs, exact=exact)
        self._vocabulary = vocabulary
        self.bands = int(weights.stored("encoder/conv1/weight").shape[1])
        # Distilled models and turbo have fewer layers in the decoder; none learnt to translate.
        self.copies = weights.layers("encoder") > shape.layers

    def new_mel(self) -> LogMel:
        return LogMel(self.bands)

    def encode(self, views: Sequence[View[Encoded]]) -> list[Encoded]:
        """One by one: the matrices are busy with the states of one window, and more of them at
        once are no cheaper."""
        return [self._encode(view) for view in views]

    def _encode(self, view: View[Encoded]) -> Encoded:
        made = self.encoder.encode(
            view.mel, view.sound, view.before, renew=view.renew, plain=view.plain
        )
        return made.finished(self.decoder.remember(made.states), view.before)

    def languages(self, states: Sequence[Encoded]) -> list[dict[str, float]]:
        codes, tokens = zip(*self._vocabulary.languages.items(), strict=True)
        found = []
        for one in states:
            logits = self.decoder.first(one.memory, self._vocabulary.start, one.weight)[
                list(tokens)
            ]
            spread = np.exp(logits - logits.max())
            found.append(dict(zip(codes, map(float, spread / spread.sum()), strict=True)))
        return found

    def speak(
        self, states: Sequence[Encoded], prompts: Sequence[Prompt], beams: int
    ) -> list[Found]:
        memories, weights = [one.memory for one in states], [one.weight for one in states]
        return self.decoder.go_on(memories, prompts, beams, weights)


def load_engine(folder: Path, vocabulary: Vocabulary, options: Options) -> Engine[Any]:
    """The engine for the device that is wanted, or that is there."""
    placed = options.placed()
    if placed.device == "cpu":
        return WhisperEngine(folder, vocabulary, placed)
    from dragoman.models.whisper.gpu.engine import TorchEngine

    return TorchEngine.load(folder, vocabulary, placed)


def release_memory() -> None:
    """Hand memory that is free back to the system: blocks of many sizes leave holes behind.

    At most once a second, however many streams ask for it.
    """
    global _released
    if sys.platform == "linux" and time.monotonic() - _released > RELEASE_EVERY:
        _released = time.monotonic()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
        if trim is not None:
            trim(0)
