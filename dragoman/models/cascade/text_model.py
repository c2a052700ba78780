"""Text models in CTranslate2's format, with their tokenizers: the second half of a cascade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.errors import DragomanError
from dragoman.models.cascade.owners import Owned, over_words, owners, room_for
from dragoman.models.cascade.tags import Tags
from dragoman.models.cascade.text_files import (
    open_net,
    open_tokenizer,
    read_config,
    read_vocabulary,
)
from dragoman.models.cascade.together import translated
from dragoman.models.cascade.translator import Pair, Sentence, Translation
from dragoman.models.options import Options
from dragoman.models.search import Found
from dragoman.models.words import Piece, Words, group, unspaced
from dragoman.text.languages import written_without_spaces

SPACE = "▁"
SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")


@dataclass(frozen=True)
class TextUnits:
    """The target vocabulary in one language."""

    names: tuple[str, ...]  # special tokens have none
    spaced: bool

    def words(self, tokens: Sequence[int], *, ended: bool) -> Words:
        """Tokens grouped into words; without spaces, every piece is a word."""
        grouped = group(map(self._piece, tokens), ended=ended)
        if self.spaced:
            return grouped
        return replace(grouped, words=tuple(map(unspaced, grouped.words)))

    def text(self, tokens: Sequence[int]) -> str:
        return "".join(self._piece(token).text for token in tokens)

    def _piece(self, token: int) -> Piece:
        name = self.names[token]
        begins = self.spaced and name.startswith(SPACE)
        return Piece(name.replace(SPACE, " "), begins=begins, ends=not self.spaced)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A sentence as the net is given it."""

    source: list[str]  # pieces
    prefix: list[str]  # what was said
    limit: int  # of what may stand there in all
    beams: int
    owned: Owned


class TextModel:
    """Loaded once, immutable."""

    def __init__(self, folder: Path, name: str, options: Options) -> None:
        self._name, self._beams = name, options.beams
        self._names = read_vocabulary(folder)
        self._ids = {piece: number for number, piece in enumerate(self._names)}
        self._tags = Tags.of(self._names, name)
        self._reads = open_tokenizer(folder)
        config = read_config(folder)
        self._end = str(config.get("eos_token", "</s>"))
        self._source_end = () if config.get("add_source_eos") else (self._end,)
        special = {*SPECIAL, self._end, *self._tags.tokens.values()}
        self._written = tuple("" if piece in special else piece for piece in self._names)
        self._net = open_net(folder, options, self._end)

    @classmethod
    def load(cls, folder: Path, name: str, options: Options) -> TextModel:
        return cls(folder, name, options)

    @property
    def speaks(self) -> tuple[str, ...]:
        return self._tags.languages

    def between(self, source: str | None, target: str) -> Pair:
        source = source or (self._tags.pair[0] if self._tags.pair else None)
        if not source:
            raise DragomanError(
                f"'{self._name}' has to know which language it translates.",
                advice="say it with --from.",
            )
        self._tags.told(self._name, source, target)
        return source, target

    def words(self, tokens: Sequence[int], *, ended: bool, pair: Pair) -> Words:
        return self._units(pair).words(tokens, ended=ended)

    def translate(self, sentences: Sequence[Sentence]) -> list[Translation]:
        return translated(sentences, self._read, _alike, self._search, self._write)

    def _read(self, sentence: Sentence) -> _Reading | None:
        """A sentence that is not `closed` is searched greedily, since it will be drafted again."""
        words, said = sentence.words, sentence.said
        pieces = [str(piece) for piece in self._reads.encode("".join(words).strip(), out_type=str)]
        room = room_for(len(pieces), len(said))
        if not pieces or room < 1:
            return None
        before_source, before_target = self._tags.told(self._name, *sentence.pair)
        prefix = [*before_target, *(self._names[token] for token in said)]
        return _Reading(
            [*before_source, *pieces, *self._source_end],
            prefix,
            limit=len(prefix) + room,
            beams=self._beams if sentence.closed else 1,
            # A language belongs to no word.
            owned=Owned(owners(pieces, words), len(words), begin=len(before_source)),
        )

    def _units(self, pair: Pair) -> TextUnits:
        return TextUnits(self._written, not written_without_spaces(pair[1]))

    def _write(self, sentence: Sentence, reading: _Reading, found: Found) -> Translation:
        units = self._units(sentence.pair)
        return over_words(found, sentence.said, reading.owned, units, closed=sentence.closed)

    def _search(self, readings: Sequence[_Reading]) -> list[Found]:
        """The best continuation of each prefix; it looks at the source tokens."""
        sources = [one.source for one in readings]
        results = self._net.translate_batch(
            sources,
            target_prefix=[one.prefix for one in readings],
            beam_size=readings[0].beams,
            max_decoding_length=max(one.limit for one in readings),
            return_attention=True,
            return_end_token=True,
        )
        texts = [
            self._text(one, result.hypotheses[0])
            for one, result in zip(readings, results, strict=True)
        ]
        scored = self._net.score_batch(sources, [text for text, _ in texts])
        return [self._found(*some) for some in zip(readings, texts, results, scored, strict=True)]

    def _text(self, reading: _Reading, hypothesis: Sequence[str]) -> tuple[list[str], bool]:
        """A text without its end, and whether it has one. It may be longer than it should be: the
        limit is that of all who are searched together."""
        text, known = list(hypothesis[: reading.limit]), len(reading.prefix)
        ended = len(text) > known and text[-1] == self._end
        return text[: len(text) - ended], ended

    def _found(
        self, reading: _Reading, text: tuple[list[str], bool], result: Any, scored: Any
    ) -> Found:
        whole, ended = text
        new = slice(len(reading.prefix), len(whole))
        tokens = tuple(self._ids[piece] for piece in whole[new])
        looks = np.array(result.attention[0], np.float32)[new]
        return Found(tokens, tuple(map(float, scored.log_probs[new])), tuple(looks), ended)


def _alike(reading: _Reading) -> tuple[int, int]:
    """What must be the same of those that are searched together. With several beams, the limit
    decides what counts as a text; one beam is cut off where its own limit is."""
    return reading.beams, reading.limit if reading.beams > 1 else 0
