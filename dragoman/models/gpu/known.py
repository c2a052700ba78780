"""What the prompts of a batch tell the decoder, on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.models.gpu.moving import moved
from dragoman.models.search import Prompt

ALIGNED = 8  # matrices whose sizes are multiples of this are multiplied fastest


@dataclass(frozen=True, slots=True)
class Known:
    """Texts that all end in the same column."""

    tokens: Tensor  # [sounds, n]
    unused: Tensor  # columns at the left of each
    starts: Tensor  # the column of the token behind which silence is judged
    avoid_end: Tensor
    first: Tensor  # nothing was said yet

    @classmethod
    def of(cls, prompts: Sequence[Prompt], device: torch.device, *, guessed: bool = False) -> Known:
        """What is known of each; with what is guessed behind it, if that is wanted."""
        texts = [prompt.whole if guessed else prompt.known for prompt in prompts]
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


def aligned(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED
