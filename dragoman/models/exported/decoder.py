"""The decoder of an exported net in the middle of a batch of texts, as the search sees it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.models.exported.net import BOS, EOS, PAD, Array, Arrays, OnnxNet, Stepped, row_of
from dragoman.models.search import FORBIDDEN, Floats, Prompt, Scores


class Texts:
    """All prompts know as many tokens: a net's cache has no room for gaps.

    A net that keeps its past is given it in `caches`, and its prompts hold what follows. After a
    search with one beam, `trails[i][n]` is the cache to go on from when n tokens of what was found
    for prompt i are kept, the last of them being the next one to read.
    """

    end = EOS

    def __init__(
        self,
        net: OnnxNet,
        memories: Sequence[Arrays],
        states: Sequence[int],
        prompts: Sequence[Prompt],
        caches: Sequence[Arrays] | None = None,
    ) -> None:
        self._net, self._layer = net, net.config.attention_layer
        self._going = list(enumerate(prompts))
        self._memory = _together(memories, net.config.memory_time)
        self._states = np.array(states, np.int64)
        pasts = caches or [net.begin(1)] * len(prompts)
        self._cache = tuple(np.concatenate(parts) for parts in zip(*pasts, strict=True))
        self._rows = list(range(len(prompts)))  # the sound that each text is about
        self.trails: list[list[Arrays]] = [[past] for past in pasts]

    def read_known(self) -> list[Scores]:
        return self._read([prompt.known for _, prompt in self._going])

    def read(self, tokens: Sequence[int]) -> list[Scores]:
        return self._read([[token] for token in tokens])

    def drop(self, counts: Sequence[int]) -> None:
        """There are no guesses."""

    def follow(self, prompts: Sequence[int], texts: Sequence[Sequence[int]]) -> None:
        rows = [row for group in texts for row in group]
        self._cache = tuple(array[rows] for array in self._cache)
        self._rows = [self._rows[row] for row in rows]
        self._going = [self._going[index] for index in prompts]

    def _read(self, texts: Sequence[Sequence[int]]) -> list[Scores]:
        memory = tuple(array[self._rows] for array in self._memory)
        final = {index: prompt.final for index, prompt in self._going}
        ended = np.array([final[row] for row in self._rows])
        tokens = np.array(texts, np.int64)
        step = self._net.step(tokens, memory, self._states[self._rows], self._cache, ended)
        self._cache = step.cache
        scores = []
        for index, prompt in self._going:
            rows = [row for row, sound in enumerate(self._rows) if sound == index]
            self.trails[index].append(row_of(step.cache, rows[0]))
            scores.append(self._scores(step, rows, prompt))
        return scores

    def _scores(self, step: Stepped, rows: Sequence[int], prompt: Prompt) -> Scores:
        log_probs = np.array(step.log_probs[rows, -1])
        log_probs[:, [PAD, BOS]] = FORBIDDEN
        if prompt.avoid_end:
            log_probs[:, EOS] = FORBIDDEN
        looks: Floats = step.attention[rows, self._layer, -1]
        may_write = step.write is None or bool(step.write[rows[0], -1])
        return Scores(log_probs, looks, may_write)


def _together(memories: Sequence[Arrays], axis: int) -> Arrays:
    """Memories as one batch, zeros behind the shorter ones."""
    parts = []
    for arrays in zip(*memories, strict=True):
        longest = max(array.shape[axis] for array in arrays)
        parts.append(np.concatenate([_padded(array, axis, longest) for array in arrays]))
    return tuple(parts)


def _padded(array: Array, axis: int, size: int) -> Array:
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)
