"""Dittli: a small German voice (Thorsten's), from the weight store; a tenth of a core."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.audio.chunk import Samples
from dragoman.store import at_hand, get
from dragoman.voices.base import Synthesiser
from dragoman.voices.german import GermanReader
from dragoman.voices.network import load_network, vits_length
from dragoman.voices.phonemes import cut
from dragoman.voices.polish import join, polish

MODEL = "dittli-de"
LONGEST = 400
"""Characters that are spoken at once: its work and memory grow with their square."""
NOISE = 0.0
"""No chance, though the network was trained with it: clearer speech, and everywhere the same."""


class DittliVoice(Synthesiser):
    """A German man, 44.1 kHz."""

    name = MODEL
    languages = ("de",)
    rate = 44100

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or get(MODEL)

    def _pronounce(self, text: str, speed: float) -> Samples:
        pieces = cut(self._reader.spell_out(text), LONGEST)
        return join([self._synthesise(piece, speed) for piece in pieces], self.rate)

    def _synthesise(self, text: str, speed: float) -> Samples:
        symbols = ["_", *self._reader.read(text), "_"]
        numbers = [self._numbers[s] for s in map(_spelling, symbols) if s in self._numbers]
        return polish(self._network.run(None, self._inputs(numbers, speed))[0], self.rate)

    def _inputs(self, numbers: list[int], speed: float) -> dict[str, Any]:
        """Every symbol stands between two blanks; the language and its tone are told with it."""
        count = 2 * len(numbers) + 1
        rows = np.zeros((3, 1, count), np.int64)
        rows[0, 0, 1::2] = numbers
        rows[1, 0, 1::2] = self._about["tone_offset"]
        rows[2, 0, 1::2] = self._about["language_id"]
        return {
            "x": rows[0],
            "x_lengths": np.array([count], np.int64),
            "sid": np.array([0], np.int64),
            "tone": rows[1],
            "language": rows[2],
            "bert": np.zeros((1, 1024, count), np.float32),
            "ja_bert": np.zeros((1, 768, count), np.float32),
            "noise_scale": np.array([NOISE], np.float32),
            "noise_scale_w": np.array([NOISE], np.float32),
            "length_scale": np.array([vits_length(speed)], np.float32),
        }

    @cached_property
    def _network(self) -> Any:
        return load_network(self._folder / "model.onnx")

    @cached_property
    def _about(self) -> dict[str, Any]:
        return dict(_table(self._folder / "metadata.json"))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {symbol: number for number, symbol in enumerate(self._about["symbols"])}

    @cached_property
    def _reader(self) -> GermanReader:
        return GermanReader(_table(self._folder / "g2p_de_rules.json"))


def missing(language: str) -> str | None:
    """What has to be done before it can speak."""
    return None if at_hand(MODEL) else f"run: dragoman models get {MODEL}"


def _spelling(symbol: str) -> str:
    """How the network spells a symbol."""
    return {"v": "V", "—": ",", "–": ",", ";": ",", ":": ","}.get(symbol, symbol)


def _table(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))
