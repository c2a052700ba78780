"""A text net's engine on a GPU, behind the same protocol as the one for the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dragoman.models.cascade.gpu.encoder import Encoder
from dragoman.models.cascade.weights import text_weights
from dragoman.models.exported.config import ExportedNet
from dragoman.models.exported.net import BOS, EOS, PAD
from dragoman.models.gpu.batches import batches
from dragoman.models.gpu.choice import Choice
from dragoman.models.gpu.decoder import Decoder
from dragoman.models.gpu.fitting import numbers_that_fit
from dragoman.models.gpu.layers import Reader
from dragoman.models.gpu.moving import moved
from dragoman.models.gpu.speaker import Speaker, states_filled
from dragoman.models.options import Compute, Options
from dragoman.models.search import Found, Prompt
from dragoman.models.whisper.weights import Weights

UNITS, TOKENS = 128, 192  # most that is usual: a long sentence, and its translation


class TorchEngine:
    """Made of weights under the names of CTranslate2."""

    def __init__(
        self,
        weights: Weights,
        attention_layer: int,
        compute: Compute = "float16",
        device: str = "cuda",
        *,
        captured: Sequence[int] | None = None,
    ) -> None:
        """`attention_layer`: of the decoder, whose heads tell where it looks; `captured` as in
        `Speaker`."""
        self._device = torch.device(device)
        heads = range(int(weights.stored("decoder/num_heads")))
        with torch.inference_mode():
            reader = Reader(weights, self._device, getattr(torch, compute))
            self._encoder = Encoder(reader)
            decoder = Decoder(reader, [(attention_layer, head) for head in heads])
            choice = Choice(
                decoder, self._device, end=EOS, no_speech=None, never=[PAD, BOS], not_first=[]
            )
        self._speaker = Speaker(
            decoder, choice, self._device, states=UNITS, tokens=TOKENS, captured=captured
        )

    @classmethod
    def load(cls, folder: Path, config: ExportedNet, options: Options) -> TorchEngine:
        weights = text_weights(folder, config)
        compute = numbers_that_fit(weights, folder, options)
        return cls(weights, config.attention_layer, compute, options.device)

    @property
    def device(self) -> str:
        return self._device.type

    def speak(
        self, sources: Sequence[Sequence[int]], prompts: Sequence[Prompt], beams: int
    ) -> list[Found]:
        """All at once, as far as there is memory for them; a guess saves no work here."""
        return self._speaker.speak(self.encode(sources), prompts, beams)

    @torch.inference_mode()
    def encode(self, sources: Sequence[Sequence[int]]) -> list[Tensor]:
        """States `[units, width]` of each; sources of about the same length go together."""
        made: dict[int, Tensor] = {}
        for group in batches([len(units) for units in sources], states_filled, self._most):
            states = self._encoded([sources[place] for place in group])
            made.update(zip(group, states, strict=True))
        return [made[place] for place in range(len(sources))]

    def _most(self, units: int) -> float:
        """How many sentences of so many units there is memory for."""
        return self._speaker.memory // self._encoder.bytes_of(units)

    def _encoded(self, sources: Sequence[Sequence[int]]) -> list[Tensor]:
        counts = [len(units) for units in sources]
        filled = states_filled(max(counts))
        units = np.full((len(sources), filled + 1), PAD, np.int64)
        units[:, -1] = counts  # one way to the device for all
        for row, one in zip(units, sources, strict=True):
            row[: len(one)] = one
        there = moved(units, self._device)
        states = self._encoder(there[:, :-1], there[:, -1])
        # A copy: a part of the batch would keep all of it in memory.
        return [one[:count].clone() for one, count in zip(states, counts, strict=True)]
