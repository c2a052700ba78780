"""The network itself, behind a small interface: encode sound, generate tokens, align them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError
from dragoman.models.whisper_mel import Mel


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the decoder is told before it speaks."""

    start: tuple[int, ...]  # language and task
    said: tuple[int, ...] = ()  # what was said of this window already
    context: tuple[int, ...] = ()  # what was said before it


@dataclass(frozen=True, slots=True)
class Generated:
    """What the decoder made of a prompt: the tokens after it, without the end."""

    tokens: tuple[int, ...]
    ended: bool
    silence: float


@dataclass(frozen=True, slots=True)
class Aligned:
    """For every token, where in the sound it was spoken and how likely it was."""

    frames: NDArray[np.int32]  # the encoder frame at which each token ends
    probabilities: tuple[float, ...]


class Engine(Protocol):
    """An encoder's output is opaque (`Any`): it belongs to the engine."""

    bands: int

    def encode(self, windows: Sequence[Mel]) -> Any:
        """Windows of equal length, encoded together."""

    def languages(self, encoded: Any) -> list[dict[str, float]]:
        """The probability of every language code."""

    def generate(
        self,
        encoded: Any,
        prompts: Sequence[Prompt],
        *,
        most: int,
        beams: int = 1,
        suppress: Sequence[int] = (),
    ) -> list[Generated]:
        """Continue prompts whose contexts are of equal length by up to `most` tokens."""

    def align(
        self, encoded: Any, start: Sequence[int], texts: Sequence[Sequence[int]], frames: int
    ) -> list[Aligned]:
        """Where each text's tokens are in the sound, of which so many mel frames were heard."""


class CTranslate2Engine:
    """Whisper as CTranslate2 runs it."""

    def __init__(self, folder: Path, *, threads: int, compute: str, device: str) -> None:
        import ctranslate2

        try:
            self._whisper = ctranslate2.models.Whisper(
                str(folder), device=device, compute_type=compute, intra_threads=threads
            )
        except (RuntimeError, ValueError) as error:
            raise DragomanError(f"Cannot load a Whisper model from {folder}: {error}.") from error
        self._storage = ctranslate2.StorageView
        self.bands = int(self._whisper.n_mels)
        self.multilingual = bool(self._whisper.is_multilingual)

    def encode(self, windows: Sequence[Mel]) -> Any:
        return self._whisper.encode(self._storage.from_array(np.stack(windows)))

    def languages(self, encoded: Any) -> list[dict[str, float]]:
        found = self._whisper.detect_language(encoded)
        return [{code.strip("<|>"): float(p) for code, p in codes} for codes in found]

    def generate(
        self,
        encoded: Any,
        prompts: Sequence[Prompt],
        *,
        most: int,
        beams: int = 1,
        suppress: Sequence[int] = (),
    ) -> list[Generated]:
        said = max(len(prompt.said) for prompt in prompts)
        start = len(prompts[0].context) + len(prompts[0].start)
        # CTranslate2 counts what was said as generated, and halves the length it is given.
        results = self._whisper.generate(
            encoded,
            [[*prompt.context, *prompt.start, *prompt.said] for prompt in prompts],
            beam_size=beams,
            max_length=max(2 * (said + most), said + most + start),
            # Nothing said yet: a draft may not be empty at once. Otherwise it may.
            suppress_blank=said == 0,
            suppress_tokens=[-1, *suppress],
            return_no_speech_prob=True,
        )
        drafts = []
        for prompt, result in zip(prompts, results, strict=True):
            tokens = result.sequences_ids[0][len(prompt.said) :]
            drafts.append(
                Generated(tuple(tokens[:most]), len(tokens) < most, float(result.no_speech_prob))
            )
        return drafts

    def align(
        self, encoded: Any, start: Sequence[int], texts: Sequence[Sequence[int]], frames: int
    ) -> list[Aligned]:
        results = self._whisper.align(encoded, list(start), [list(t) for t in texts], frames)
        return [_aligned(result, len(text)) for result, text in zip(results, texts, strict=True)]


def _aligned(result: Any, tokens: int) -> Aligned:
    """The last frame of each token's part of the path through the sound."""
    frames = np.zeros(tokens, np.int32)
    for token, frame in result.alignments:
        if token < tokens:
            frames[token] = max(frames[token], frame)
    return Aligned(frames, tuple(float(p) for p in result.text_token_probs[:tokens]))
