"""Piper voices: a network with its description beside it, `anna.onnx` and `anna.onnx.json`."""

from __future__ import annotations

import json
import unicodedata
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.audio.chunk import Samples
from dragoman.audio.resample import check_rate
from dragoman.errors import DragomanError
from dragoman.store import at_hand, get
from dragoman.voices import espeak
from dragoman.voices.base import Synthesiser
from dragoman.voices.espeak_library import TIE
from dragoman.voices.network import load_network, vits_length
from dragoman.voices.phonemes import cut, transcribe
from dragoman.voices.polish import join, polish

LONGEST = 400
"""Phonemes in one go: longer texts take more memory, not more breath."""
PAD, START, END = "_", "^", "$"


class PiperVoice(Synthesiser):
    """A Piper voice; its description says how text is read and what its network expects."""

    def __init__(
        self, path: str | Path, name: str | None = None, speaker: str | None = None
    ) -> None:
        self._path = Path(path).expanduser()
        about = _describe(self._path)
        self.name = name or str(path)
        try:
            self.rate = check_rate(int(about["audio"]["sample_rate"]), str(path))
            self._numbers: dict[str, list[int]] = about["phoneme_id_map"]
            self._reader = str(about["espeak"]["voice"])
            self._kind = str(about.get("phoneme_type", "espeak"))
            self._scales: dict[str, float] = about.get("inference", {})
            self._speaker = _speaker_number(about, speaker, self.name)
        except (KeyError, TypeError, ValueError) as error:
            raise DragomanError(f"{path}.json does not describe a Piper voice: {error}.") from None
        if self._kind not in ("espeak", "text"):
            raise DragomanError(f"{path} wants '{self._kind}' phonemes, which Dragoman has not.")
        self.languages = (self._reader.split("-")[0].replace("cmn", "zh"),)

    def _pronounce(self, text: str, speed: float) -> Samples:
        pieces = cut(self._read(text), LONGEST)
        return join([self._synthesise(piece, speed) for piece in pieces], self.rate)

    def _synthesise(self, phonemes: str, speed: float) -> Samples:
        numbers = np.array([self._number(phonemes)], np.int64)
        scales = [
            self._scales.get("noise_scale", 0.667),
            self._scales.get("length_scale", 1.0) * vits_length(speed),
            self._scales.get("noise_w", 0.8),
        ]
        inputs = {
            "input": numbers,
            "input_lengths": np.array([numbers.shape[1]], np.int64),
            "scales": np.array(scales, np.float32),
        }
        if self._speaker is not None:
            inputs["sid"] = np.array([self._speaker], np.int64)
        return polish(self._network.run(None, inputs)[0], self.rate)

    def _read(self, text: str) -> str:
        if self._kind == "text":
            return unicodedata.normalize("NFD", text.casefold())
        return unicodedata.normalize("NFD", transcribe(text, self._reader).replace(TIE, ""))

    def _number(self, phonemes: str) -> list[int]:
        """What the network reads: every phoneme it knows, with padding in between."""
        numbers = [*self._numbers[START], *self._numbers[PAD]]
        for phoneme in phonemes:
            if phoneme in self._numbers:
                numbers += [*self._numbers[phoneme], *self._numbers[PAD]]
        return [*numbers, *self._numbers[END]]

    @cached_property
    def _network(self) -> Any:
        return load_network(self._path)


def from_store(model: str) -> PiperVoice:
    """A Piper voice of the weight store, fetched if it is not here."""
    (path,) = get(model).glob("*.onnx")
    return PiperVoice(path, name=model)


def missing(model: str) -> str | None:
    """What has to be done before a Piper voice of the weight store can speak."""
    return espeak.missing("en") if at_hand(model) else f"run: dragoman models get {model}"


def _describe(path: Path) -> dict[str, Any]:
    description = path.with_name(f"{path.name}.json")
    for wanted in (path, description):
        if not wanted.is_file():
            raise DragomanError(
                f"There is no file {wanted}; a Piper voice is NAME.onnx with NAME.onnx.json."
            )
    try:
        about = json.loads(description.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DragomanError(f"{description} is not JSON: {error}.") from None
    if not isinstance(about, dict):
        raise DragomanError(f"{description} does not describe a Piper voice.")
    return about


def _speaker_number(about: dict[str, Any], speaker: str | None, name: str) -> int | None:
    """The number of a speaker, where the voice has several."""
    known: dict[str, int] = about.get("speaker_id_map") or {}
    if speaker is None:
        return 0 if int(about.get("num_speakers", 1)) > 1 else None
    if speaker not in known:
        have = f"it has {', '.join(known)}" if known else "it has only one"
        raise DragomanError(f"The voice {name} has no speaker '{speaker}'; {have}.")
    return known[speaker]
