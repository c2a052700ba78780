"""An exported net that reads text: the second half of a cascade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.models.cascade.engine import Engine, load_engine
from dragoman.models.cascade.owners import Owned, over_words, owners, room_for
from dragoman.models.cascade.together import translated
from dragoman.models.cascade.translator import Pair, Sentence, Translation
from dragoman.models.exported.config import ExportedNet
from dragoman.models.exported.net import BOS, UNK
from dragoman.models.exported.pieces import Pieces, open_units, tag_of
from dragoman.models.options import Options
from dragoman.models.search import Found, Prompt
from dragoman.models.words import Words, without_stop
from dragoman.text.plain import plain
from dragoman.text.sentences import COMMAS, ends_sentence, full_stop, with_stop


@dataclass(frozen=True, slots=True)
class _Reading:
    """A sentence as the net is given it."""

    units: list[int]
    prompt: Prompt
    beams: int
    owned: Owned
    unended: bool  # it was given the full stop that it lacks


class TextNet:
    """Loaded once, immutable."""

    def __init__(
        self,
        name: str,
        config: ExportedNet,
        engine: Engine,
        source: Any,
        targets: dict[str, Pieces],
        beams: int = 5,
    ) -> None:
        """`source` is a SentencePiece model, `targets` the units by language ("": of any)."""
        self._name, self._config, self._engine, self._beams = name, config, engine, beams
        self._source, self._targets = source, targets

    @classmethod
    def load(cls, folder: Path, name: str = "", options: Options | None = None) -> TextNet:
        options = options or Options()
        config = ExportedNet.read(folder)
        if config.input != "text":
            raise DragomanError(f"{folder} holds a net that hears speech; it cannot read text.")
        engine = load_engine(folder, config, options)
        codes = config.languages.targets or ("",)
        targets = {code: Pieces.of_target(folder, config, code) for code in codes}
        source = open_units(folder / "source.model")
        return cls(name or folder.name, config, engine, source, targets, options.beams)

    @property
    def speaks(self) -> tuple[str, ...]:
        return self._config.languages.targets

    def between(self, source: str | None, target: str) -> Pair:
        known = self._config.languages
        known.refuse_others(self._name, source, target)
        source = source or known.source
        if not source:
            raise DragomanError(
                f"'{self._name}' has to know which language it translates.",
                advice="say it with --from.",
            )
        return source, target

    def words(self, tokens: Sequence[int], *, ended: bool, pair: Pair) -> Words:
        return self._units(pair).words(tokens, ended=ended)

    def _units(self, pair: Pair) -> Pieces:
        return self._targets.get(pair[1]) or self._targets[""]

    def translate(self, sentences: Sequence[Sentence]) -> list[Translation]:
        return translated(sentences, self._read, lambda one: one.beams, self._search, self._write)

    def _read(self, sentence: Sentence) -> _Reading | None:
        """A sentence that is not `closed` is searched greedily, since it will be drafted again.

        One that is over without a full stop is read with one: without, a net that has learned from
        beginnings takes it for one and says less of it.
        """
        words, (source, target) = sentence.words, sentence.pair
        unended = sentence.closed and self._lacks_stop(words, source)
        ids, word_of = self._units_of(with_stop(words, source) if unended else words, target)
        room = room_for(len(word_of), len(sentence.said))
        if not word_of or room < 1:
            return None
        beams = self._beams if sentence.closed else 1
        guess = sentence.guess[: room - 1] if beams == 1 else ()
        return _Reading(
            ids,
            Prompt((BOS,), room, sentence.said, guess=guess),
            beams,
            Owned(word_of, len(words), begin=len(ids) - len(word_of)),  # the tag is nobody's
            unended,
        )

    def _search(self, readings: Sequence[_Reading]) -> list[Found]:
        units, prompts = [one.units for one in readings], [one.prompt for one in readings]
        return self._engine.speak(units, prompts, readings[0].beams)

    def _write(self, sentence: Sentence, reading: _Reading, found: Found) -> Translation:
        """Where a full stop was read for a comma, the comma is said."""
        units, last = self._units(sentence.pair), sentence.words[-1]
        if reading.unended and last.endswith(COMMAS):
            found = _with_comma(found, sentence.said, units, last[-1])
        return over_words(found, sentence.said, reading.owned, units, closed=sentence.closed)

    def _units_of(self, words: Sequence[str], target: str) -> tuple[list[int], list[int]]:
        """Source units of some words, and the word that each belongs to.

        A net with several targets reads a tag first, which belongs to no word.
        """
        text = "".join(words).strip()
        if self._config.source_plain:
            text = plain(text)
        ids = [int(number) for number in self._source.encode(text)]
        word_of = owners([self._source.id_to_piece(number) for number in ids], words)
        return [*self._tag(target), *ids], word_of

    def _lacks_stop(self, words: Sequence[str], source: str) -> bool:
        """Whether words do not end a sentence, and could: a net may have learned without marks."""
        if not "".join(words).strip() or ends_sentence(words[-1]):
            return False
        return UNK not in self._source.encode(full_stop(source))

    def _tag(self, target: str) -> list[int]:
        if len(self._config.languages.targets) < 2:
            return []
        return [int(self._source.piece_to_id(tag_of(target)))]


def _with_comma(found: Found, said: Sequence[int], units: Pieces, comma: str) -> Found:
    """A text that goes on: with a comma in place of its full stop, if its units have one and none
    was said; else with neither."""
    place = without_stop(units, [*said, *found.tokens]) - len(said)
    if not found.ended or place == len(found.tokens):
        return found
    tokens = (*found.tokens[: max(0, place)], *(units.mark(comma) if place >= 0 else ()))
    count = len(tokens)
    return replace(
        found, tokens=tokens, log_probs=found.log_probs[:count], looks=found.looks[:count]
    )
