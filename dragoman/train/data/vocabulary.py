"""SentencePiece vocabularies, trained from the corpus and saved with the run."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.files import whole_file
from dragoman.models.exported.net import BOS, EOS, PAD, UNK
from dragoman.models.exported.pieces import tag_of
from dragoman.text.plain import plain
from dragoman.train.recipe import Units

_SENTENCES = 100_000  # a random sample of this many is plenty to learn units from
_THREADS = 8  # always as many, since their number changes the result
MOST_UNKNOWN = 0.05


class Pieces:
    """A trained vocabulary: text to unit ids and back."""

    def __init__(self, path: Path, units: Units):
        import sentencepiece

        self.units = units
        if not path.is_file():
            raise DragomanError(f"There is no vocabulary {path}.")
        try:
            self.model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise DragomanError(f"{path} is not a SentencePiece model.") from error
        ids = (self.model.pad_id(), self.model.bos_id(), self.model.eos_id(), self.model.unk_id())
        if ids != (PAD, BOS, EOS, UNK):
            raise DragomanError(
                f"The vocabulary {path} has its special units at {ids}, not at (0, 1, 2, 3) for "
                "pad, bos, eos, unk; train it with this recipe's `vocabulary` instead."
            )

    def __len__(self) -> int:
        return int(self.model.get_piece_size())

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Ids without BOS and EOS."""
        prepared = [self.prepared(text) for text in texts]
        return self.model.encode(prepared, out_type=int, num_threads=os.cpu_count() or 1)

    def decode(self, ids: list[int]) -> str:
        kept = [i for i in ids if i > UNK]
        return str(self.model.decode(kept)).strip()

    def prepared(self, text: str) -> str:
        """The text as the units were learned from it."""
        return plain(text) if self.units.plain else text

    def tag(self, language: str) -> int:
        """The unit that asks for a translation into a language."""
        number = int(self.model.piece_to_id(tag_of(language)))
        if number == UNK:
            raise DragomanError(
                f"The vocabulary has no unit {tag_of(language)}, which tells a net that has "
                f"several targets to write '{language}'; let the recipe learn its own."
            )
        return number

    def word_ends(self, extra: int = 0, spaced: bool = True) -> list[bool] | None:
        """Which units end a word (and `extra` more that do not); None if beginnings are marked.

        Where a language has no spaces, every unit is a word, as it is for the runtime.
        """
        pieces = [self.model.id_to_piece(number) for number in range(len(self))]
        if not spaced:
            return [piece != "▁" for piece in pieces] + [False] * extra
        if not self.units.suffix:
            return None
        return [piece.endswith("▁") for piece in pieces] + [False] * extra

    def check(self, ids: list[list[int]], what: str) -> None:
        """Refuse a vocabulary that does not know the language of the data."""
        total = sum(len(row) for row in ids)
        unknown = sum(row.count(UNK) for row in ids)
        if total and unknown / total > MOST_UNKNOWN:
            why = "it was trained on another language or script. Give the right one."
            if not self.units.model:  # learned for this run
                why = (
                    f"its {len(self)} units are too few for so many letters, or it learned from "
                    "texts in another script. Ask for more units (its 'size'), or look at the data."
                )
            raise DragomanError(
                f"{unknown / total:.0%} of the {what} units are unknown to the vocabulary: {why}"
            )


def train_pieces(
    texts: Iterable[str], units: Units, path: Path, tagged: Sequence[str] = ()
) -> None:
    """Learn a vocabulary and write its model to `path`; `tagged` languages get a unit each."""
    import sentencepiece

    # What several packs say, as those of several targets do, has no new units the second time.
    chosen = list(dict.fromkeys(texts))
    if len(chosen) > _SENTENCES:
        chosen = random.Random(0).sample(chosen, _SENTENCES)
    prepared = [plain(text) for text in chosen] if units.plain else chosen
    if not any(prepared):
        raise DragomanError("There is no text to learn a vocabulary from.")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(prepared),
            model_writer=model,
            model_type=units.kind,
            vocab_size=units.size,
            hard_vocab_limit=False,  # a small corpus gives a smaller vocabulary
            treat_whitespace_as_suffix=units.suffix,
            character_coverage=1.0 if units.kind != "char" else 0.9999,
            max_sentence_length=20_000,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            user_defined_symbols=[tag_of(language) for language in tagged],
            num_threads=_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        why = str(error).rpartition("]")[2].strip(" .") or str(error)
        raise DragomanError(
            f"No {units.kind} vocabulary of {units.size} units can be learned from this text "
            f"({why}); ask for another size."
        ) from error
    with whole_file(path, "wb") as stream:
        stream.write(model.getvalue())
