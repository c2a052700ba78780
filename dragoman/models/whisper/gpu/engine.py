"""Whisper's engine on a GPU, behind the same interface as the one for the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dragoman.models.gpu.batches import batches
from dragoman.models.gpu.choice import Choice
from dragoman.models.gpu.decoder import Decoder
from dragoman.models.gpu.fitting import numbers_that_fit
from dragoman.models.gpu.layers import Reader
from dragoman.models.gpu.moving import moved
from dragoman.models.gpu.speaker import Speaker
from dragoman.models.options import Compute, Options
from dragoman.models.search import Found, Prompt
from dragoman.models.whisper.engine import Config, View
from dragoman.models.whisper.gpu.encoder import Encoder
from dragoman.models.whisper.gpu.features import DeviceMel, DeviceWindow, MelBank
from dragoman.models.whisper.graph import Shape
from dragoman.models.whisper.tokens import Vocabulary
from dragoman.models.whisper.weights import Weights

# Frames that windows are filled up to.
LENGTHS = (640, 800, 960, 1120, 1280, 1440, 1600, 1920, 2240, 2560, 3000)
TOKENS = 192  # most that a window holds


class TorchEngine:
    """Weights in CTranslate2's format, on a device."""

    def __init__(
        self,
        weights: Weights,
        config: Config,
        vocabulary: Vocabulary,
        compute: Compute = "float16",
        device: str = "cuda",
        *,
        captured: Sequence[int] | None = None,
    ) -> None:
        """`config` is what the folder of the weights says about them; `captured` are the numbers
        of sounds for which steps of the decoder are captured."""
        self._device = torch.device(device)
        dtype = getattr(torch, compute)
        heads = config.checked(weights, vocabulary).heads(Shape.of(weights))
        with torch.inference_mode():
            reader = Reader(weights, self._device, dtype)
            self._encoder, self._decoder = Encoder(reader), Decoder(reader, heads)
            choice = Choice(
                self._decoder,
                self._device,
                end=vocabulary.end,
                no_speech=vocabulary.no_speech,
                never=[*config.never, *vocabulary.times],
                not_first=config.not_first,
            )
            self._bank = MelBank(self._encoder.bands, self._device)
        self._dtype, self._start = dtype, vocabulary.start
        self._languages = vocabulary.languages
        self._speaker = Speaker(
            self._decoder,
            choice,
            self._device,
            states=self._encoder.most_states,
            tokens=TOKENS,
            captured=captured,
        )
        # Distilled models and turbo have fewer layers in the decoder; none learnt to translate.
        self.copies = weights.layers("encoder") > self._decoder.layers

    @classmethod
    def load(cls, folder: Path, vocabulary: Vocabulary, options: Options) -> TorchEngine:
        """Load a folder in CTranslate2's format."""
        weights = Weights(folder / "model.bin")
        compute = numbers_that_fit(weights, folder, options)
        return cls(weights, Config.read(folder), vocabulary, compute, options.device)

    @property
    def device(self) -> str:
        return self._device.type

    @property
    def bands(self) -> int:
        return int(self._encoder.bands)

    def new_mel(self) -> DeviceMel:
        return self._bank.new()

    @torch.inference_mode()
    def encode(self, views: Sequence[View[Tensor]]) -> list[Tensor]:
        """Windows of about the same length go together; all of each is encoded anew."""
        windows: list[DeviceWindow] = [view.mel for view in views]
        groups = list(batches([one.length for one in windows], _filled, self._most))
        placed = self._bank.placed([windows[index] for group in groups for index in group])
        made: dict[int, Tensor] = {}
        for group in groups:
            part = placed[len(made) : len(made) + len(group)]
            mel = self._bank.windows(part, _filled(windows[group[-1]].length))
            states = self._encoder(mel.to(self._dtype), part[:, 3])
            for index, one in zip(group, states, strict=True):
                # A copy: a part of the batch would keep all of it in memory.
                made[index] = one[: windows[index].length // 2].clone()
        return [made[index] for index in range(len(windows))]

    def _most(self, frames: int) -> float:
        """How many windows of so many frames there is memory for."""
        size = torch.finfo(self._dtype).bits // 8
        # Of a frame: its bands, in 32 bits, twice; of a state, some 16 times its width.
        return self._speaker.memory // (frames * (8 * self.bands + 8 * self._encoder.width * size))

    @torch.inference_mode()
    def languages(self, states: Sequence[Tensor]) -> list[dict[str, float]]:
        sounds, lengths = self._speaker.stacked(states)
        tape = self._decoder.begin(sounds, lengths, 1, 1)
        start = torch.full((len(states), 1), self._start, device=self._device)
        x = self._decoder.read_known(tape, start, torch.zeros_like(start[:, 0]))
        ids = self._tensor(list(self._languages.values()))
        found = torch.softmax(self._decoder.logits(x[:, 0])[:, ids], dim=1).tolist()
        return [dict(zip(self._languages, row, strict=True)) for row in found]

    def speak(self, states: Sequence[Tensor], prompts: Sequence[Prompt], beams: int) -> list[Found]:
        return self._speaker.speak(states, prompts, beams)

    def _tensor(self, numbers: Sequence[int]) -> Tensor:
        return moved(np.array(numbers), self._device)


def _filled(frames: int) -> int:
    return next((length for length in LENGTHS if length >= frames), frames)
