"""The decoder of an exported net in the middle of a batch of texts, as the search sees it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.models.exported.net import BOS, EOS, PAD, Array, Arrays, OnnxNet, Stepped, row_of
from dragoman.models.search import FORBIDDEN, Prompt, Scores


class Texts:
    """All prompts know as many tokens: a net's cache has no room for gaps, so only a prompt that is
    alone may have a guess.

    A net that keeps its past is given it in `caches`, and its prompts hold what follows. After a
    search with one beam, `trails[i][n]` is the cache to go on from when n tokens of what was found
    for prompt i are kept, the last of them being the next one to read. Of other nets nothing is
    kept: the caches after every token of a long text are hundreds of megabytes.
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
        self.trails: list[list[Arrays]] = [[past] for past in caches or ()]

    def read_known(self) -> list[Scores]:
        prompts = [prompt for _, prompt in self._going]
        after = max(len(prompt.guess) for prompt in prompts)
        return self._read([prompt.whole for prompt in prompts], after)

    def read(self, tokens: Sequence[int]) -> list[Scores]:
        return self._read([[token] for token in tokens])

    def drop(self, counts: Sequence[int]) -> None:
        if counts[0]:
            kept = zip(self._cache, self._net.config.cache, strict=True)
            self._cache = tuple(_shorter(array, counts[0], one.shape) for array, one in kept)

    def follow(self, prompts: Sequence[int], texts: Sequence[Sequence[int]]) -> None:
        rows = [row for group in texts for row in group]
        self._cache = tuple(array[rows] for array in self._cache)
        self._rows = [self._rows[row] for row in rows]
        self._going = [self._going[index] for index in prompts]

    def _read(self, texts: Sequence[Sequence[int]], after: int = 0) -> list[Scores]:
        """What may follow each text, and what may have, before each of its last `after` tokens."""
        memory = tuple(array[self._rows] for array in self._memory)
        final = {index: prompt.final for index, prompt in self._going}
        ended = np.array([final[row] for row in self._rows])
        tokens = np.array(texts, np.int64)
        step = self._net.step(tokens, memory, self._states[self._rows], self._cache, ended)
        self._cache = step.cache
        scores = []
        for index, prompt in self._going:
            rows = [row for row, sound in enumerate(self._rows) if sound == index]
            if self.trails:
                self.trails[index].append(row_of(step.cache, rows[0]))
            scores.append(self._scores(step, rows, prompt, after))
        return scores

    def _scores(self, step: Stepped, rows: Sequence[int], prompt: Prompt, after: int) -> Scores:
        if after:  # of the only text
            log_probs, looks = step.log_probs[0, -1 - after :], step.attention[0, self._layer]
            looks = looks[-1 - after :]
        else:
            log_probs, looks = step.log_probs[rows, -1], step.attention[rows, self._layer, -1]
        log_probs = np.array(log_probs)
        log_probs[:, [PAD, BOS]] = FORBIDDEN
        if prompt.avoid_end:
            log_probs[:, EOS] = FORBIDDEN
        may_write = step.write is None or bool(step.write[rows[0], -1])
        return Scores(log_probs, looks, may_write)


def _shorter(array: Array, count: int, begun: Sequence[int]) -> Array:
    """A cache without its last tokens; `begun` is its shape, without the batch, before any."""
    along = (slice(None),) * (1 + list(begun).index(0))
    return array[(*along, slice(0, -count))]


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
