"""The units of an exported net: SentencePiece models as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.models.exported.config import ExportedNet
from dragoman.models.exported.net import BOS, EOS, PAD, UNK
from dragoman.text.languages import find_language
from dragoman.text.units import SPACES, Marking, word_ends


@dataclass(frozen=True, slots=True)
class Grouped:
    """Tokens as words, with the space before them; `ends[i]` tokens make up `words[:i + 1]`."""

    words: tuple[str, ...]
    ends: tuple[int, ...]
    tail: str


@dataclass(frozen=True)
class Pieces:
    """What the ids mean."""

    names: tuple[str, ...]
    marking: Marking
    spaced: bool = True  # False: a language without spaces, where every piece is a word

    @classmethod
    def load(cls, path: Path, units: int, *, suffix: bool, spaced: bool = True) -> Pieces:
        model = open_units(path)
        names = tuple(model.id_to_piece(i) for i in range(model.get_piece_size()))
        if len(names) != units:
            raise DragomanError(
                f"{path} has {len(names)} units, but the net {units}: it is another net's."
            )
        return cls(names, "suffix" if suffix else "prefix", spaced)

    @classmethod
    def of_target(cls, folder: Path, config: ExportedNet) -> Pieces:
        """What an exported net writes."""
        language = config.languages.target
        spaced = find_language(language).spaced if language else True
        path = folder / "target.model"
        return cls.load(path, config.target_units, suffix=config.suffix, spaced=spaced)

    def words(self, tokens: Sequence[int], *, ended: bool) -> Grouped:
        """Group tokens into words as they are printed."""
        pieces = [self._piece(token) for token in tokens]
        whole = word_ends(pieces, self.marking, ended) if self.spaced else [True] * len(pieces)
        words: list[str] = []
        ends: list[int] = []
        begin = 0
        for index, ends_here in enumerate(whole):
            if not ends_here:
                continue
            text = self._printed(pieces[begin : index + 1])
            if text:
                words.append(text)
                ends.append(index + 1)
            begin = index + 1
        return Grouped(tuple(words), tuple(ends), self._printed(pieces[begin:]))

    def count(self, tokens: Sequence[int]) -> int:
        """Words among source tokens: those that ended, or began where only that is marked."""
        pieces = [self._piece(token) for token in tokens]
        if self.marking == "prefix":
            return sum(piece.startswith(SPACES) for piece in pieces)
        return sum(word_ends(pieces, self.marking))

    def begins_word(self, tokens: Sequence[int], index: int) -> bool:
        """Whether a word begins with tokens[index]."""
        if not self.spaced or index == 0:
            return True
        if self.marking == "prefix":
            return self._piece(tokens[index]).startswith(SPACES)
        return word_ends([self._piece(tokens[index - 1])], self.marking)[0]

    def _piece(self, token: int) -> str:
        return "" if token in (PAD, BOS, EOS, UNK) else self.names[token]

    def _printed(self, pieces: Sequence[str]) -> str:
        text = "".join(pieces)
        for space in SPACES:
            text = text.replace(space, " ")
        text = text.strip()
        return f" {text}" if text and self.spaced else text


def open_units(path: Path) -> Any:
    """A SentencePiece model."""
    import sentencepiece

    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (OSError, RuntimeError) as error:
        raise DragomanError(f"{path} is not a SentencePiece model: {error}.") from error
