"""What Moonshine's tokens stand for: pieces of words, or single bytes of a rare letter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.models.words import Piece, Words, group

SPACE = "▁"
START, END = 1, 2
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


@dataclass(frozen=True)
class MoonshineUnits:
    """The ids of a `tokenizer.json`."""

    names: tuple[str, ...]  # special tokens have none

    @classmethod
    def load(cls, path: Path) -> MoonshineUnits:
        try:
            tokenizer = json.loads(path.read_text(encoding="utf-8"))
            names = {int(number): name for name, number in tokenizer["model"]["vocab"].items()}
            names |= {int(token["id"]): "" for token in tokenizer["added_tokens"]}
            return cls(tuple(names.get(number, "") for number in range(max(names) + 1)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DragomanError(f"{path} is not Moonshine's tokenizer: {error!r}.") from error

    def name(self, token: int) -> str:
        """How the vocabulary prints a token; nothing: it stands for no text."""
        return self.names[token] if token < len(self.names) else ""

    def words(self, tokens: Sequence[int], *, ended: bool) -> Words:
        return group(self._pieces(tokens), ended=ended)

    def text(self, tokens: Sequence[int]) -> str:
        return "".join(piece.text for piece in self._pieces(tokens))

    def _pieces(self, tokens: Sequence[int]) -> Iterator[Piece]:
        """Bytes are taken together until they make a letter, or until something else comes."""
        held = b""
        count = 0
        for token in tokens:
            name = self.name(token)
            byte = _BYTE.fullmatch(name)
            if byte:
                held, count = held + bytes.fromhex(byte[1]), count + 1
                if _is_whole(held):
                    yield Piece(held.decode(), count)
                    held, count = b"", 0
                continue
            if held:
                yield Piece(held.decode("utf-8", "replace"), count)
                held, count = b"", 0
            yield Piece(name.replace(SPACE, " "), begins=name.startswith(SPACE))


def _is_whole(letters: bytes) -> bool:
    try:
        letters.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
