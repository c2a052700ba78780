"""What a decoder says of encoded sources, all prompts in one batch as far as there is memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dragoman.models.gpu.choice import Choice
from dragoman.models.gpu.decoder import Decoder
from dragoman.models.gpu.moving import moved
from dragoman.models.gpu.speaking import Speaking
from dragoman.models.gpu.texts import CapturedTexts
from dragoman.models.search import Found, Prompt

STATES_ALIGNED = 64
CAPTURED = (8, 32, 128, 512)  # sources; the largest only for a small net
SHARE = 0.6  # of the memory that is free once the model is loaded, for one batch


class Speaker:
    """A decoder, which tokens it may choose, and how much it may do at once."""

    def __init__(
        self,
        decoder: Decoder,
        choice: Choice,
        device: torch.device,
        *,
        states: int,
        tokens: int,
        captured: Sequence[int] | None = None,
    ) -> None:
        """`states` and `tokens` are the most that are usual; `captured` are the numbers of sources
        for which steps of the decoder are captured: some on a GPU, none elsewhere."""
        self.decoder, self._choice, self._device = decoder, choice, device
        self._states, self._tokens = states_filled(states), tokens
        self.memory = free_bytes(device)
        usual = CAPTURED if device.type == "cuda" else ()
        self._sizes = usual if captured is None else captured
        self._captured: dict[int, list[CapturedTexts]] = {}  # by the number of beams

    @torch.inference_mode()
    def speak(self, states: Sequence[Tensor], prompts: Sequence[Prompt], beams: int) -> list[Found]:
        """Continue every prompt, given the states `[n, width]` that it is about."""
        prompts = [prompt.within(self.decoder.most_tokens) for prompt in prompts]
        longest = states_filled(max(map(len, states)))
        most = max(1, int(self.memory // self.decoder.bytes_of(longest, beams)))
        each = -(-len(states) // -(-len(states) // most))  # batches of about the same size
        found: list[Found] = []
        for at in range(0, len(states), each):
            part = slice(at, at + each)
            sources, buffers = self.stacked(states[part]), self._buffers(beams)
            speaking = Speaking(self.decoder, self._choice, sources, prompts[part], beams, buffers)
            found += speaking.results()
        return [
            replace(one, looks=tuple(look[: len(source)] for look in one.looks))
            for one, source in zip(found, states, strict=True)
        ]

    def stacked(self, states: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Sources filled up to one length, and how long each is."""
        lengths = [len(one) for one in states]
        filled = pad_sequence(list(states), batch_first=True)
        more = states_filled(max(lengths)) - filled.shape[1]
        counts = moved(np.array(lengths), self._device)
        return torch.nn.functional.pad(filled, (0, 0, 0, more)), counts

    def _buffers(self, beams: int) -> list[CapturedTexts]:
        """Buffers for few sources, made when they are first needed; small ones where memory is."""
        if beams not in self._captured:
            each = self.decoder.bytes_of(self._states, beams, self._tokens)
            self._captured[beams] = [
                CapturedTexts(
                    self.decoder,
                    self._choice,
                    sounds=size,
                    states=self._states,
                    beams=beams,
                    tokens=self._tokens,
                )
                for size in self._sizes
                if size * each <= self.memory / 4
            ]
        return self._captured[beams]


def states_filled(states: int) -> int:
    """How many states so many are filled up to."""
    return -(-states // STATES_ALIGNED) * STATES_ALIGNED


def free_bytes(device: torch.device) -> float:
    """How much memory one batch may take."""
    if device.type != "cuda":
        return 1e9
    free, whole = torch.cuda.mem_get_info(device)
    ours = torch.cuda.get_per_process_memory_fraction(device.index)  # it wants a number, or None
    return SHARE * min(free, whole * ours)
