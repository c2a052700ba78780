"""The units of an exported net: SentencePiece models as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dragoman.errors import DragomanError
from dragoman.models.exported.config import Languages
from dragoman.models.exported.net import BOS, EOS, PAD, UNK
from dragoman.models.words import Piece, Words, group, unspaced
from dragoman.text.languages import find_language
from dragoman.text.units import SPACES, Marking, word_ends
from dragoman.text.words import closes


class Described(Protocol):
    """What is known of a net that writes."""

    @property
    def languages(self) -> Languages: ...
    @property
    def target_units(self) -> int: ...
    @property
    def suffix(self) -> bool: ...


@dataclass(frozen=True)
class Pieces:
    """What the ids mean."""

    names: tuple[str, ...]
    marking: Marking
    spaced: bool = True  # False: a language without spaces, where every piece is a word
    language: str = ""

    @classmethod
    def load(
        cls, path: Path, units: int, *, suffix: bool, spaced: bool = True, language: str = ""
    ) -> Pieces:
        model = open_units(path)
        names = tuple(model.id_to_piece(i) for i in range(model.get_piece_size()))
        if len(names) != units:
            raise DragomanError(
                f"{path} has {len(names)} units, but the net {units}: it is another net's."
            )
        return cls(names, "suffix" if suffix else "prefix", spaced, language)

    @classmethod
    def of_target(cls, folder: Path, config: Described, language: str = "") -> Pieces:
        """What an exported net writes; of one with several targets, in one of them."""
        language = language or config.languages.target
        spaced = find_language(language).spaced if language else True
        path, suffix = folder / "target.model", config.suffix
        return cls.load(path, config.target_units, suffix=suffix, spaced=spaced, language=language)

    def words(self, tokens: Sequence[int], *, ended: bool) -> Words:
        """Group tokens into words as they are printed, each with the space before it."""
        grouped = group(map(self._piece, tokens), ended=ended)
        words = tuple(map(self._printed, grouped.words))
        return Words(words, grouped.ends, self._printed(grouped.tail))

    def text(self, tokens: Sequence[int]) -> str:
        return _spaced("".join(map(self._name, tokens)))

    def mark(self, text: str) -> tuple[int, ...]:
        """The unit of a mark that stands right behind a word; none, where there is no such unit."""
        name = text + SPACES[0] if self.marking == "suffix" else text
        return (self.names.index(name),) if self.spaced and name in self.names else ()

    def count(self, tokens: Sequence[int]) -> int:
        """Words among source tokens: those that ended, or began where only that is marked; all of
        them in a language without spaces."""
        pieces = [self._name(token) for token in tokens]
        if not self.spaced:
            return sum(piece not in ("", *SPACES) for piece in pieces)
        if self.marking == "prefix":
            return sum(piece.startswith(SPACES) for piece in pieces)
        return sum(word_ends(pieces, self.marking))

    def _piece(self, token: int) -> Piece:
        name = self._name(token)
        if not self.spaced:
            return Piece(_spaced(name), ends=True)
        begins = self.marking == "prefix" and name.startswith(SPACES)
        ends = self.marking == "suffix" and name.endswith(SPACES)
        return Piece(_spaced(name), begins=begins, ends=ends)

    def _name(self, token: int) -> str:
        return "" if token in (PAD, BOS, EOS, UNK) else self.names[token]

    def _printed(self, text: str) -> str:
        """With the space before it, which a full stop that comes late has not; a percent sign on
        its own is not late: the net has set it apart, as German and Spanish do."""
        if not self.spaced:
            return unspaced(text)
        text = text.strip()
        return text if closes(text, self.language) and "%" not in text else f" {text}"


def tag_of(language: str) -> str:
    """What a unit is called that asks a net of several targets for a language."""
    return f"<2{language}>"


def _spaced(text: str) -> str:
    for space in SPACES:
        text = text.replace(space, " ")
    return text


def open_units(path: Path) -> Any:
    """A SentencePiece model."""
    import sentencepiece

    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (OSError, RuntimeError) as error:
        raise DragomanError(f"{path} is not a SentencePiece model: {error}.") from error
