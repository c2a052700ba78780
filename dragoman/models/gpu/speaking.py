"""From encoded sounds and prompts to texts: the decoder and the search, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.models.gpu.beams import Beams
from dragoman.models.gpu.choice import Choice
from dragoman.models.gpu.decoder import Decoder
from dragoman.models.gpu.moving import moved
from dragoman.models.gpu.texts import CapturedTexts, Texts, aligned
from dragoman.models.search import Found, Prompt

ROOM = 32  # tokens for which there is room at first
CHECK = 4  # tokens after which it is asked who goes on: the device waits for the answer


@dataclass(frozen=True, slots=True)
class Known:
    """What the prompts of a batch tell the decoder, all ending in the same column."""

    tokens: Tensor  # [sounds, n]
    unused: Tensor  # columns at the left of each
    starts: Tensor  # the column of the token behind which silence is judged
    avoid_end: Tensor
    first: Tensor  # nothing was said yet

    @classmethod
    def of(cls, prompts: Sequence[Prompt], device: torch.device) -> Known:
        texts = [prompt.known for prompt in prompts]
        width = max(map(len, texts))
        tokens = np.zeros((len(texts), width), np.int64)
        for row, text in zip(tokens, texts, strict=True):
            row[width - len(text) :] = text
        unused = [width - len(text) for text in texts]
        starts = [left + len(p.context) for left, p in zip(unused, prompts, strict=True)]
        flags = [[p.avoid_end for p in prompts], [not p.said for p in prompts]]
        packed = np.column_stack([tokens, unused, starts, *flags])  # one way to the device for all
        there = moved(packed, device)
        return cls(
            there[:, :width], there[:, width], there[:, width + 1],
            there[:, width + 2], there[:, width + 3],
        )  # fmt: skip


class Speaking:
    """A batch of prompts that are continued."""

    def __init__(
        self,
        decoder: Decoder,
        choice: Choice,
        sounds: tuple[Tensor, Tensor],
        prompts: Sequence[Prompt],
        beams: int,
        captured: Sequence[CapturedTexts] = (),
    ) -> None:
        """`sounds` are states, `[sounds, states, width]`, and how many of each count; `captured`
        are buffers for fewer and fewer sounds."""
        states, lengths = sounds
        self._decoder, self._choice, self._beams = decoder, choice, beams
        self._smaller = list(captured)
        self._captured: CapturedTexts | None = None
        known = Known.of(prompts, states.device)
        self._width = width = known.tokens.shape[1]
        most = [prompt.most for prompt in prompts]
        self._most = max(most)
        self._made = 1  # tokens of every text
        room = min(ROOM, max(1, self._most))
        tape = decoder.begin(states, lengths, 1, aligned(width + room * beams))
        before = known.tokens[:, :0]
        if width > 1:
            before = decoder.read_known(tape, known.tokens[:, :-1], known.unused)
        self._silences = choice.silence(before, known.starts)
        looks = states.new_zeros(len(prompts), room, beams, states.shape[1])
        search = Beams.of(prompts, most, beams, choice.end, looks)
        # The last token that is known is the first that is read as those that are made will be.
        last = torch.full((1,), width - 1, device=states.device)
        self._texts = Texts(tape, search, known.tokens[:, -1:], last, known.avoid_end)
        self._texts.step(decoder, choice, aligned(width), known.first)

    def results(self) -> list[Found]:
        """Make the texts to their ends."""
        found: dict[int, Found] = {}
        who = np.arange(len(self._silences))  # is still in the batch
        while len(who):
            going = self._texts.search.going[: len(who)].cpu().numpy()
            if self._worth_taking_out(going):
                found |= self._take_out(who, going)
                who = who[going]
            for _ in range(CHECK if len(who) else 0):
                self._step()
        silences = self._silences.tolist()
        return [replace(found[index], silence=silence) for index, silence in enumerate(silences)]

    def _worth_taking_out(self, going: NDArray[np.bool_]) -> bool:
        """Whether to go on without those that are over, which means copying the batch."""
        left = int(going.sum())
        if not left or self._fitting(left) is not None:
            return True
        return self._captured is None and 2 * left <= len(going)

    def _fitting(self, sounds: int) -> CapturedTexts | None:
        """The smallest buffers for so many sounds, if they are smaller than those in use."""
        fitting = [
            one
            for one in self._smaller
            if one.fits(self._texts, sounds, max(1, self._most), self._width)
            and (self._captured is None or one.sounds < self._captured.sounds)
        ]
        return min(fitting, key=lambda one: one.sounds, default=None)

    def _take_out(self, who: NDArray[np.int64], going: NDArray[np.bool_]) -> dict[int, Found]:
        """The texts that are over; the batch goes on without them."""
        device = self._silences.device
        over, left = (moved(np.flatnonzero(which), device) for which in (~going, going))
        made = dict(zip(who[~going].tolist(), self._texts.search.found(over), strict=True))
        if len(left):
            fitting = self._fitting(len(left))
            if fitting is None:
                self._texts.keep(left)
            else:
                fitting.take(self._texts, left)
                self._captured, self._texts = fitting, fitting.texts
        return made

    def _step(self) -> None:
        """Make one more token of every text."""
        if self._made >= self._most:
            return
        if self._captured is not None:
            self._captured.step()
        else:
            self._step_freely()
        self._made += 1

    def _step_freely(self) -> None:
        texts = self._texts
        if self._made == texts.search.room:
            room = min(2 * self._made, self._most)
            texts.search.widen(room)
            texts.tape.widen(aligned(self._width + room * self._beams))
        used = self._width + self._made * self._beams
        texts.step(self._decoder, self._choice, aligned(used))
