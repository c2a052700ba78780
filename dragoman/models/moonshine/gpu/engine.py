"""Moonshine's engine on a GPU, behind the same protocol as the one for the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dragoman.audio.chunk import Samples
from dragoman.models.gpu.batches import batches
from dragoman.models.gpu.choice import Choice
from dragoman.models.gpu.decoder import Decoder
from dragoman.models.gpu.fitting import numbers_that_fit
from dragoman.models.gpu.layers import Reader
from dragoman.models.gpu.moving import moved
from dragoman.models.gpu.speaker import Speaker, states_filled
from dragoman.models.moonshine.alignment import alignment
from dragoman.models.moonshine.encoder import BEHIND, LONG, STATE, Labels, no_labels
from dragoman.models.moonshine.gpu.encoder import Encoder
from dragoman.models.moonshine.tongue import Tongue, no_judgement
from dragoman.models.options import Compute, Options
from dragoman.models.search import Floats, Found, Past, Prompt
from dragoman.models.whisper.graph import Shape
from dragoman.models.whisper.weights import Weights

STATES, TOKENS = 640, 192  # most that a window holds: 24 s, and what is said in them


@dataclass(frozen=True, slots=True, eq=False)
class DeviceEncoded:
    """A window as far as it was encoded; what is large lies on the device."""

    before: Tensor | None = None  # mean and mean square of what was heard before the window
    count_before: int = 0  # frames that these were learnt from
    level: Tensor | None = None  # with the window
    count: int = 0
    sound: Tensor | None = None  # of the window
    states: Tensor | None = None  # [states, width]
    judged: Floats = field(default_factory=no_judgement)  # whether they are English

    @property
    def labels(self) -> Labels:
        return no_labels()

    def __len__(self) -> int:
        return 0 if self.states is None else len(self.states)

    def anew(self) -> DeviceEncoded:
        """Nothing of a window yet, of a speaker whose level is known."""
        return DeviceEncoded(self.level, self.count, self.level, self.count)


class TorchEngine:
    """Made of weights under the names of CTranslate2."""

    def __init__(
        self,
        weights: Weights,
        alignment: Sequence[tuple[int, int]],
        compute: Compute = "float16",
        device: str = "cuda",
        *,
        end: int,
        never: Sequence[int],
        tongue: Tongue | None = None,
        captured: Sequence[int] | None = None,
    ) -> None:
        """`alignment` are the heads that follow the sound, `never` the tokens that are not made,
        `tongue` what tells the language of states; `captured` as in `Speaker`."""
        self._device = torch.device(device)
        with torch.inference_mode():
            reader = Reader(weights, self._device, getattr(torch, compute))
            self._encoder, decoder = Encoder(reader), Decoder(reader, alignment)
            choice = Choice(
                decoder, self._device, end=end, no_speech=None, never=never, not_first=[]
            )
            self._tongue = None
            if tongue is not None:
                self._tongue = torch.from_numpy(tongue.weight).to(self._device), tongue.bias
        self._speaker = Speaker(
            decoder, choice, self._device, states=STATES, tokens=TOKENS, captured=captured
        )

    @classmethod
    def load(
        cls,
        weights: Weights,
        options: Options,
        *,
        end: int,
        never: Sequence[int],
        tongue: Tongue | None = None,
    ) -> TorchEngine:
        """With the heads that follow the sound."""
        compute = numbers_that_fit(weights, weights.path.parent, options)
        heads = alignment(Shape.of(weights))
        return cls(weights, heads, compute, options.device, end=end, never=never, tongue=tongue)

    @property
    def device(self) -> str:
        """Where it works: cpu or cuda."""
        return self._device.type

    def new(self) -> DeviceEncoded:
        return DeviceEncoded()

    @torch.inference_mode()
    def encode(
        self, windows: Sequence[DeviceEncoded], sounds: Sequence[Samples]
    ) -> list[DeviceEncoded]:
        """Windows of about the same length go together; all of each is encoded anew."""
        made = list(windows)
        new = [index for index, sound in enumerate(sounds) if len(sound) >= BEHIND + STATE]
        parts = self._sent([sounds[index] for index in new])
        for index, part in zip(new, parts, strict=True):
            made[index] = _longer(windows[index], part)
        lengths = [_states_in(made[index]) for index in new]
        for places in batches(lengths, states_filled, self._most):
            group = [new[place] for place in places]
            encoded = self._encoded([made[index] for index in group])
            for index, one in zip(group, encoded, strict=True):
                made[index] = one
        return made

    def speak(
        self,
        windows: Sequence[DeviceEncoded],
        prompts: Sequence[Prompt],
        beams: int,
        pasts: Sequence[Past] | None = None,
    ) -> list[Found]:
        """Texts are read anew every time: that costs little here."""
        states = [one.states for one in windows if one.states is not None]
        return self._speaker.speak(states, prompts, beams)

    def _sent(self, sounds: Sequence[Samples]) -> Sequence[Tensor]:
        """Sounds on the device, by one way for all."""
        if not sounds:
            return []
        ends = list(accumulate(map(len, sounds)))
        there = moved(np.concatenate(sounds), self._device)
        return torch.tensor_split(there, ends[:-1])

    def _most(self, states: int) -> float:
        """How many windows of so many states there is memory for."""
        return self._speaker.memory // self._encoder.bytes_of(states)

    def _encoded(self, windows: Sequence[DeviceEncoded]) -> list[DeviceEncoded]:
        """The windows with states of all of their sound."""
        counts = [_states_in(window) for window in windows]
        sounds = [
            _sound_of(window)[: states * STATE + BEHIND]
            for window, states in zip(windows, counts, strict=True)
        ]
        samples = pad_sequence(sounds, batch_first=True)
        more = states_filled(max(counts)) * STATE + BEHIND - samples.shape[1]
        samples = torch.nn.functional.pad(samples, (0, more))
        none = samples.new_zeros(2)
        before = torch.stack([none if w.before is None else w.before for w in windows])
        heard = moved(np.array([[w.count_before for w in windows], counts]), self._device)
        states, levels = self._encoder(samples, heard[1], before, heard[0])
        judged = self._judge(states)
        return [
            replace(
                window,
                level=level.clone(),
                count=min(window.count_before + (n * STATE + BEHIND - 127) // 64 + 1, LONG),
                states=own[:n].clone(),  # a part of the batch would keep all of it in memory
                judged=numbers[:n].copy(),
            )
            for window, n, level, own, numbers in zip(
                windows, counts, levels, states, judged, strict=True
            )
        ]

    def _judge(self, states: Tensor) -> list[Floats]:
        if self._tongue is None:
            return [no_judgement() for _ in states]
        weight, bias = self._tongue
        return list((states.float() @ weight + bias).cpu().numpy())


def _sound_of(window: DeviceEncoded) -> Tensor:
    assert window.sound is not None
    return window.sound


def _states_in(window: DeviceEncoded) -> int:
    """How many states the sound of a window makes."""
    return (len(_sound_of(window)) - BEHIND) // STATE


def _longer(window: DeviceEncoded, sound: Tensor) -> DeviceEncoded:
    """A window with more sound, which begins where its states end."""
    known = [] if window.sound is None else [window.sound[: len(window) * STATE]]
    return replace(window, sound=torch.cat([*known, sound]))
