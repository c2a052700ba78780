"""Text models in CTranslate2's format, with their tokenizers: the second half of a cascade."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.errors import DragomanError
from dragoman.models.cascade.owners import Owned, nothing, over_words, owners, room_for
from dragoman.models.cascade.tags import Tags
from dragoman.models.cascade.translator import Pair, Sentence, Translation
from dragoman.models.options import Options
from dragoman.models.search import Found
from dragoman.models.words import Piece, Words, group, unspaced
from dragoman.text.languages import written_without_spaces

SPACE = "▁"
SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")
VOCABULARIES = ("shared_vocabulary", "target_vocabulary")
# SentencePiece models for what is read and for what is written, as the families name them.
TOKENIZERS = (
    ("source.spm", "target.spm"),
    *((name, name) for name in ("sentencepiece.bpe.model", "sentencepiece.model", "spm.model")),
)


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
        import ctranslate2

        options = options.on_cpu("A text model")
        self._name, self._beams = name, options.beams
        self._names = _read_vocabulary(folder)
        self._ids = {piece: number for number, piece in enumerate(self._names)}
        self._tags = Tags.of(self._names, name)
        self._reads = _open_tokenizer(folder)
        config = _read_config(folder)
        self._end = str(config.get("eos_token", "</s>"))
        self._source_end = () if config.get("add_source_eos") else (self._end,)
        special = {*SPECIAL, self._end, *self._tags.tokens.values()}
        self._written = tuple("" if piece in special else piece for piece in self._names)
        try:
            self._net: Any = ctranslate2.Translator(
                str(folder), compute_type=options.compute, intra_threads=options.threads
            )
        except (RuntimeError, ValueError) as error:
            raise DragomanError(f"Cannot load a text model from {folder}: {error}.") from error

    @classmethod
    def load(cls, folder: Path, name: str, options: Options) -> TextModel:
        return cls(folder, name, options)

    @property
    def speaks(self) -> tuple[str, ...]:
        return self._tags.languages

    def between(self, source: str | None, target: str) -> Pair:
        source = source or (self._tags.pair[0] if self._tags.pair else None)
        if not source:
            raise DragomanError(f"Say with --from which language '{self._name}' shall translate.")
        self._tags.told(self._name, source, target)
        return source, target

    def words(self, tokens: Sequence[int], *, ended: bool, pair: Pair) -> Words:
        return self._units(pair).words(tokens, ended=ended)

    def translate(self, sentences: Sequence[Sentence]) -> list[Translation]:
        """A sentence that is not `closed` is searched greedily, since it will be drafted again."""
        read = ((index, self._read(one)) for index, one in enumerate(sentences))
        readings = {index: reading for index, reading in read if reading is not None}
        found: dict[int, Found] = {}
        for members in _together(readings):
            made = self._search([readings[index] for index in members])
            found.update(zip(members, made, strict=True))
        return [
            over_words(
                found[index],
                one.said,
                readings[index].owned,
                self._units(one.pair),
                closed=one.closed,
            )
            if index in readings
            else nothing(one.said, len(one.words))
            for index, one in enumerate(sentences)
        ]

    def _read(self, sentence: Sentence) -> _Reading | None:
        """A sentence as it is given to the net; None: there is nothing to translate."""
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


def _together(readings: Mapping[int, _Reading]) -> Iterable[list[int]]:
    """Who is searched together: with several beams, the limit decides what counts as a text, so it
    must be the same; one beam is cut off where its own limit is."""
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, one in readings.items():
        groups[one.beams, one.limit if one.beams > 1 else 0].append(index)
    return groups.values()


def _vocabulary_path(folder: Path) -> Path | None:
    paths = (folder / f"{name}.{kind}" for name in VOCABULARIES for kind in ("json", "txt"))
    return next((path for path in paths if path.is_file()), None)


def _read_vocabulary(folder: Path) -> tuple[str, ...]:
    path = _vocabulary_path(folder)
    if path is None:
        raise DragomanError(f"There is no shared_vocabulary or target_vocabulary in {folder}.")
    try:
        text = path.read_text(encoding="utf-8")
        names = json.loads(text) if path.suffix == ".json" else text.removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        raise DragomanError(f"Cannot read the vocabulary {path}: {error}.") from error
    return tuple(map(str, names))


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DragomanError(f"Cannot read {folder / 'config.json'}: {error}.") from error
    if not isinstance(config, dict):
        raise DragomanError(f"{folder / 'config.json'} is not the settings of a text model.")
    return config


def _open_tokenizer(folder: Path) -> Any:
    """The SentencePiece model for what is read."""
    from dragoman.models.exported.pieces import open_units

    for names in TOKENIZERS:
        if all((folder / name).is_file() for name in names):
            return open_units(folder / names[0])
    raise DragomanError(
        f"The text model in {folder} has no tokenizer: put the original model's source.spm and "
        "target.spm, or its sentencepiece.bpe.model, beside model.bin."
    )
