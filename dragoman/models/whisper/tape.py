"""What a decoder has computed of a batch of texts, which differ in length and end side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dragoman.models.search import FORBIDDEN, Floats, Past
from dragoman.models.whisper.graph import Shape

Memory = dict[str, Floats]
"""The decoder's keys and values of a window, by name: `[1, heads, states, head width]`."""


class Tape:
    """What the network has computed of a batch of texts that all end in the same column."""

    def __init__(
        self,
        memories: Sequence[Memory],
        shape: Shape,
        weights: Sequence[Floats] | None = None,
        pasts: Sequence[Past] = (),
    ) -> None:
        texts = len(memories)
        lengths = [one["memory_keys_0"].shape[2] for one in memories]
        self.memory = {
            name: _stacked([one[name] for one in memories], max(lengths)) for name in memories[0]
        }
        pasts = pasts or [Past()] * texts
        known = [len(past.tokens) for past in pasts]
        self._columns = max(known)
        self._unused = self._columns - np.array(known, np.int64)  # columns left of each text
        nothing = np.zeros((1, shape.heads, 0, shape.head_width), np.float32)
        names = [f"{kind}_{n}" for kind, n in product(("keys", "values"), range(shape.layers))]
        self.cache: dict[str, Floats] = {
            name: _behind([past.cache.get(name, nothing) for past in pasts], self._columns)
            for name in names
        }
        self.memory_mask = np.full((texts, 1, 1, max(lengths)), FORBIDDEN, np.float32)
        for row, length in enumerate(lengths):
            self.memory_mask[row, ..., :length] = 0.0 if weights is None else weights[row]

    def extend(self, unused: Sequence[int], width: int) -> tuple[NDArray[np.int64], Floats]:
        """Make room for `width` columns: their positions, and what each of them may see."""
        self._unused = self._unused + np.array(unused, np.int64)
        columns = self._columns + np.arange(width)
        self._columns += width
        left = self._unused[:, None]
        positions = np.maximum(columns[None, :] - left, 0)
        seen = np.arange(self._columns)
        hidden = (seen[None, :] < left)[:, None, :] | (seen[None, :] > columns[:, None])[None]
        # A column left of the text sees only itself: it must see something.
        hidden &= seen[None, None, :] != columns[None, :, None]
        return positions, np.where(hidden, FORBIDDEN, np.float32(0))[:, None]

    def row(self, text: int) -> dict[str, Floats]:
        """What was computed of one text, and nothing of the others: it may be kept for long."""
        used = slice(int(self._unused[text]), None)
        return {n: array[text : text + 1, :, used].copy() for n, array in self.cache.items()}

    def drop(self, counts: Sequence[int]) -> None:
        """Forget the last columns of each text, and move the texts to the same end again."""
        if not any(counts):
            return
        fewest = min(counts)
        self._columns -= fewest
        for name, array in self.cache.items():
            kept = array[:, :, : self._columns].copy()
            for index, count in enumerate(counts):
                kept[index] = np.roll(kept[index], count - fewest, axis=1)
            self.cache[name] = kept
        self._unused = self._unused + np.array(counts) - fewest

    def follow(self, sounds: Sequence[int], texts: Sequence[Sequence[int]]) -> None:
        """Go on with some of the sounds; `texts` are the rows which their texts continue."""
        rows = [row for group in texts for row in group]
        if len(sounds) < len(self.memory_mask):
            self.memory = {name: array[list(sounds)] for name, array in self.memory.items()}
            self.memory_mask = self.memory_mask[list(sounds)]
        if rows != list(range(len(self._unused))):
            self.cache = {name: array[rows] for name, array in self.cache.items()}
            self._unused = self._unused[rows]


def _behind(arrays: Sequence[Floats], columns: int) -> Floats:
    """Arrays `[1, heads, tokens, size]` as one, in which all end in the same column."""
    filled = np.zeros((len(arrays), *arrays[0].shape[1:2], columns, arrays[0].shape[3]), np.float32)
    for row, array in zip(filled, arrays, strict=True):
        row[:, columns - array.shape[2] :] = array[0]
    return filled


def _stacked(arrays: Sequence[Floats], longest: int) -> Floats:
    """Arrays `[1, heads, states, size]` as one; shorter ones are filled up."""
    if len(arrays) == 1:
        return arrays[0]
    filled = np.zeros((len(arrays), *arrays[0].shape[1:2], longest, arrays[0].shape[3]), np.float32)
    for row, array in zip(filled, arrays, strict=True):
        row[:, : array.shape[2]] = array[0]
    return filled
