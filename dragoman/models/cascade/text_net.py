"""An exported net that reads text: the second half of a cascade."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError
from dragoman.models.exported.net import BOS, OnnxNet
from dragoman.models.exported.pieces import Pieces, open_units
from dragoman.models.exported.search import Limits, beam_search, greedy
from dragoman.models.whisper.guard import cut_loop
from dragoman.text.plain import plain
from dragoman.text.sentences import STOPS
from dragoman.text.units import SPACES

LONGER = 2.0  # a translation has at most so many times the units of its source,
SPARE = 10  # and so many more


@dataclass(frozen=True, slots=True)
class Translation:
    """A continuation of what was said of a sentence."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    attention: NDArray[np.float32]  # [tokens, source words]
    ended: bool


class TextNet:
    """Loaded once, immutable."""

    def __init__(self, net: OnnxNet, source: Any, target: Pieces, beams: int = 5) -> None:
        """`source` is a SentencePiece model."""
        self.net, self.target, self.beams = net, target, beams
        self._source = source

    @classmethod
    def load(cls, folder: Path, *, threads: int = 0, beams: int = 5) -> TextNet:
        net = OnnxNet(folder, threads=threads)
        config = net.config
        if config.input != "text":
            raise DragomanError(f"{folder} holds a net that hears speech; it cannot read text.")
        return cls(
            net, open_units(folder / "source.model"), Pieces.of_target(folder, config), beams
        )

    def translate(
        self, words: Sequence[str], said: Sequence[int] = (), *, closed: bool = True
    ) -> Translation:
        """Go on with the translation of a sentence of which `said` was said.

        A sentence that is not `closed` may go on: it is searched greedily, since it will be drafted
        again, and gets no full stop.
        """
        ids, word_of = self._read(words)
        room = SPARE + int(LONGER * len(ids)) - len(said)
        if not ids or room < 1:
            return Translation((), (), np.zeros((0, len(words)), np.float32), bool(said))
        source = self.net.encode(np.array([ids], np.int64), np.array([len(ids)], np.int64))
        start, limits = [BOS, *said], Limits(room)
        if closed and self.beams > 1:
            found = beam_search(
                self.net, source.memory, source.lengths, start, limits, beams=self.beams
            )
        else:
            found = greedy(self.net, source.memory, source.lengths, [start], [limits])[0]
        keep = cut_loop(said, found.tokens)
        ended = found.ended and keep == len(found.tokens)
        if ended and not closed:
            keep = self._without_stop(found.tokens)
        attention = np.zeros((keep, len(words)), np.float32)
        if keep:
            layer = found.attention[:keep, self.net.config.attention_layer]
            np.add.at(attention.T, word_of, layer[:, : len(ids)].T)
        return Translation(found.tokens[:keep], found.log_probs[:keep], attention, ended)

    def _read(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Source units of some words, and the word that each belongs to."""
        text = "".join(words).strip()
        if self.net.config.source_plain:
            text = plain(text)
        ids = [int(number) for number in self._source.encode(text)]
        pieces = [self._source.id_to_piece(number) for number in ids]
        return ids, _owners([_letters(piece) for piece in pieces], [_letters(w) for w in words])

    def _without_stop(self, tokens: Sequence[int]) -> int:
        """How many tokens there are before the full stop at the end."""
        count = len(tokens)
        while count and self._text(tokens[count - 1]) in STOPS:
            count -= 1
        return count

    def _text(self, token: int) -> str:
        grouped = self.target.words([token], ended=True)
        return "".join(grouped.words).strip()


def _letters(text: str) -> int:
    return len(text) - sum(text.count(space) for space in SPACES)


def _owners(pieces: Sequence[int], words: Sequence[int]) -> list[int]:
    """For pieces of so many letters, the word in whose letters the middle of each lies.

    A vocabulary may write some letters differently, so places are shares of the whole text.
    """
    ends, total = list(accumulate(words)), max(1, sum(pieces))
    middles = (end - size / 2 for end, size in zip(accumulate(pieces), pieces, strict=True))
    places = (middle * ends[-1] / total for middle in middles)
    return [min(bisect_right(ends, place), len(words) - 1) for place in places]
