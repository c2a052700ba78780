"""Whisper's vocabulary: special tokens, languages, and how tokens become words.

Text tokens stand for bytes, not letters: a letter may be spread over several tokens, and a word
over several more. Only a folder's own vocabulary file is read; nothing has to be encoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.models.kind import read_settings
from dragoman.models.words import Piece, Words, group
from dragoman.text.languages import written_without_spaces

ENGLISH_ONLY_END = 50256


@dataclass(frozen=True)
class Vocabulary:
    """What the ids mean."""

    names: tuple[str, ...]  # of every token, as the vocabulary file prints it
    languages: dict[str, int]
    start: int
    end: int
    translate: int
    transcribe: int
    previous: int
    no_speech: int
    no_times: int

    @classmethod
    def load(cls, folder: Path) -> Vocabulary:
        """Read `vocabulary.txt` or `vocabulary.json` of a CTranslate2 folder."""
        names = _read_names(folder)
        ids = {name: index for index, name in enumerate(names)}
        try:
            start, translate = ids["<|startoftranscript|>"], ids["<|translate|>"]
            return cls(
                names=tuple(names),
                languages=_languages(ids, start, translate),
                start=start,
                end=ids["<|endoftext|>"],
                translate=translate,
                transcribe=ids["<|transcribe|>"],
                previous=ids["<|startofprev|>"],
                no_speech=ids.get("<|nospeech|>", ids.get("<|nocaptions|>", -1)),
                no_times=ids["<|notimestamps|>"],
            )
        except KeyError as error:
            raise DragomanError(
                f"The vocabulary in {folder} has no token {error}; it is not Whisper's."
            ) from error

    @property
    def multilingual(self) -> bool:
        """English-only models have one token less, and are told no language and no task."""
        return self.end != ENGLISH_ONLY_END

    @property
    def times(self) -> range:
        """The tokens that stand for a moment in the window, and the one that forbids them."""
        return range(self.no_times, len(self.names))

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for; special tokens stand for none."""
        return _bytes_of(self.names[token])

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones left out."""
        return b"".join(map(self.piece, tokens)).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class WhisperUnits:
    """Its tokens as words of one language."""

    vocabulary: Vocabulary
    spaceless: bool  # every letter is a word of its own

    @classmethod
    def of(cls, vocabulary: Vocabulary, language: str) -> WhisperUnits:
        return cls(vocabulary, written_without_spaces(language))

    def text(self, tokens: Sequence[int]) -> str:
        return self.vocabulary.text(tokens)

    def words(self, tokens: Sequence[int], *, ended: bool) -> Words:
        """Each word has the space before it; punctuation belongs to the word before it."""
        return group(self._pieces(tokens), ended=ended)

    def _pieces(self, tokens: Sequence[int]) -> Iterator[Piece]:
        """Tokens that make no whole letters by themselves are one piece."""
        letters, count = b"", 0
        for token in tokens:
            letters += self.vocabulary.piece(token)
            count += 1
            text = _decoded(letters)
            if text is not None:
                yield Piece(text, count, begins=_begins_word(text, self.spaceless))
                letters, count = b"", 0
        if count:
            yield Piece("", count)


def _languages(ids: dict[str, int], start: int, translate: int) -> dict[str, int]:
    """Tokens by language code. Models of English alone have them all the same, but learnt none."""
    found = {name.strip("<|>"): id for name, id in ids.items() if start < id < translate}
    if not found or ids["<|endoftext|>"] == ENGLISH_ONLY_END:
        return {"en": found.get("en", start)}
    return found


def _decoded(letters: bytes) -> str | None:
    """The text of bytes; None as long as the last letter lacks some of its own."""
    try:
        return letters.decode("utf-8")
    except UnicodeDecodeError as error:
        cut_short = error.end == len(letters) and error.reason == "unexpected end of data"
        return None if cut_short else letters.decode("utf-8", "replace")


def _begins_word(text: str, spaceless: bool) -> bool:
    letter = text[:1]
    return letter == " " or (spaceless and not letter.isascii() and letter.isalnum())


def _read_names(folder: Path) -> list[str]:
    if (folder / "vocabulary.json").is_file():
        return read_settings(folder / "vocabulary.json", list[str], "a vocabulary")
    path = folder / "vocabulary.txt"
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except FileNotFoundError as error:
        raise DragomanError(
            f"There is no vocabulary.txt or vocabulary.json in {folder}."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DragomanError(f"Cannot read the vocabulary {path}: {error}.") from error


@lru_cache(maxsize=8192)
def _bytes_of(name: str) -> bytes:
    """A token's bytes from its printable name."""
    if name.startswith("<|") and name.endswith("|>"):
        return b""
    return bytes(_BYTES[letter] for letter in name if letter in _BYTES)


def _printable_bytes() -> dict[str, int]:
    """The alphabet of byte-level vocabularies: printable bytes stand for themselves, the others
    for letters from U+0100 on, in order."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    table = {chr(byte): byte for byte in plain}
    return table | {chr(0x100 + index): byte for index, byte in enumerate(others)}


_BYTES = _printable_bytes()
