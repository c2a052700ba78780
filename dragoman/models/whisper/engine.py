"""The network behind a small interface, so that tests can put another in its place.

CTranslate2 encodes and detects languages; our own decoder, which tells where it looks, speaks.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from dragoman.errors import DragomanError
from dragoman.models.options import Options
from dragoman.models.search import Found, Prompt
from dragoman.models.whisper.alignment import alignment_heads
from dragoman.models.whisper.decoder import Decoder, Rules, States
from dragoman.models.whisper.graph import Shape
from dragoman.models.whisper.mel import LogMel, Mel
from dragoman.models.whisper.tokens import Vocabulary
from dragoman.models.whisper.weights import Weights

RELEASE_EVERY = 1.0  # seconds
_released = 0.0  # when that was done last

_A = TypeVar("_A")
_B = TypeVar("_B")


class Engine(Protocol):
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

    def new_mel(self) -> LogMel:
        """The log-mel frames of a new stream; its windows are for `encode` alone."""

    def encode(self, windows: Sequence[Mel]) -> list[States]:
        """Encode windows of any lengths; what is made of them is for the methods below alone."""

    def languages(self, states: Sequence[States]) -> list[dict[str, float]]:
        """The probability of every language code."""

    def speak(self, states: Sequence[States], prompts: Sequence[Prompt], beams: int) -> list[Found]:
        """Continue every prompt."""


class WhisperEngine:
    """Loaded from a folder in CTranslate2's format."""

    device = "cpu"

    def __init__(self, folder: Path, vocabulary: Vocabulary, options: Options) -> None:
        # Every length of window makes the library under CTranslate2 keep kernels of 3 MB; it would
        # keep a thousand of them. It reads this when it is loaded.
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "4")
        import ctranslate2

        try:
            self._whisper = ctranslate2.models.Whisper(
                str(folder),
                device="cpu",
                compute_type=options.compute,
                intra_threads=options.threads,
            )
        except (RuntimeError, ValueError) as error:
            raise DragomanError(f"Cannot load a Whisper model from {folder}: {error}.") from error
        self._storage = ctranslate2.StorageView
        config = read_config(folder)
        rules = Rules(
            len(vocabulary.names),
            end=vocabulary.end,
            no_speech=vocabulary.no_speech,
            never=[*config["suppress_ids"], *vocabulary.times],
            not_first=config["suppress_ids_begin"],
        )
        weights = Weights(folder / "model.bin")
        shape = Shape.of(weights)
        heads = alignment_heads(
            config.get("alignment_heads"), layers=shape.layers, heads=shape.heads, words=shape.words
        )
        self._decoder = Decoder(weights, rules, heads, options.threads)
        # Distilled models and turbo have fewer layers in the decoder; none learnt to translate.
        self.copies = f"encoder/layer_{shape.layers}/ffn/linear_0/weight" in weights

    @property
    def bands(self) -> int:
        return int(self._whisper.n_mels)

    def new_mel(self) -> LogMel:
        return LogMel(self.bands)

    def encode(self, windows: Sequence[Mel]) -> list[States]:
        """Windows of equal length go together."""

        def together(group: Sequence[Mel]) -> list[States]:
            return list(np.array(self._whisper.encode(self._stack(group), to_cpu=True)))

        return by_length(windows, lambda window: window.shape[1], together)

    def languages(self, states: Sequence[States]) -> list[dict[str, float]]:
        if not self._whisper.is_multilingual:
            return [{"en": 1.0} for _ in states]

        def together(group: Sequence[States]) -> list[dict[str, float]]:
            found = self._whisper.detect_language(self._stack(group))
            return [{code.strip("<|>"): float(p) for code, p in codes} for codes in found]

        return by_length(states, len, together)

    def speak(self, states: Sequence[States], prompts: Sequence[Prompt], beams: int) -> list[Found]:
        return self._decoder.speak(states, prompts, beams)

    def _stack(self, arrays: Sequence[Mel]) -> Any:
        return self._storage.from_array(np.stack(arrays))


def load_engine(folder: Path, vocabulary: Vocabulary, options: Options) -> Engine:
    """The engine for the device that is wanted, or that is there."""
    placed = options.placed()
    if placed.device == "cpu":
        return WhisperEngine(folder, vocabulary, placed)
    from dragoman.models.whisper.gpu.engine import TorchEngine

    return TorchEngine.load(folder, vocabulary, placed)


def by_length(
    items: Sequence[_A], length: Callable[[_A], int], work: Callable[[Sequence[_A]], list[_B]]
) -> list[_B]:
    """What is made of items, those of equal length together."""
    groups: dict[int, list[int]] = {}
    for index, item in enumerate(items):
        groups.setdefault(length(item), []).append(index)
    made: dict[int, _B] = {}
    for group in groups.values():
        made |= dict(zip(group, work([items[index] for index in group]), strict=True))
    return [made[index] for index in range(len(items))]


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


def read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for key in ("suppress_ids", "suppress_ids_begin"):
            config[key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DragomanError(f"{path} is not the settings of a Whisper model: {error}.") from error
    return config
