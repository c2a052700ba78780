"""Cuts the output of a whole talk into pieces that belong to the reference's sentences.

A streaming system says one long text; references come in sentences. Two ways to find the cuts:

- `soft` aligns words by the letters they share and keeps every pair that helps, so a word finds
  its sentence even when it is inflected otherwise or when its neighbours are missing. This is
  the alignment of "Better Late Than Never" (arXiv:2509.17349), as OmniSTEval computes it.
- `mwer` places the cuts so that the word errors against all sentences together are fewest, the
  method of Matusov et al. (2005), with the choices among equally good cuts that mweralign makes.

Both are exact: no beam, no band. `docs/longform.md` says when to prefer which.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby
from math import inf
from typing import Literal

import numpy as np

from dragoman.errors import DragomanError
from dragoman.metrics.alignment import Path, align
from dragoman.metrics.edits import fewest_errors
from dragoman.metrics.instance import Unit
from dragoman.metrics.similarity import similarity

Aligner = Literal["soft", "mwer"]
ALIGNERS: tuple[Aligner, ...] = ("soft", "mwer")


@dataclass(frozen=True, slots=True)
class Cutting:
    """How to cut.

    With a `language` soft alignment first splits off punctuation by that language's Moses rules.

    Soft alignment finds no place for stray punctuation before the very first word. It goes to
    the first sentence, unless `drop_unplaced`: then the first cut is after it, as in OmniSTEval.
    """

    aligner: Aligner = "soft"
    unit: Unit = "word"
    language: str | None = None
    drop_unplaced: bool = False


DEFAULT = Cutting()


def cut(units: Sequence[str], references: Sequence[str], cutting: Cutting = DEFAULT) -> list[int]:
    """Where to cut `units` (words or characters) so that piece i goes with reference i.

    Returns one number more than there are references: piece i is `units[cuts[i]:cuts[i + 1]]`.
    """
    return cut_all([(units, references)], cutting)[0]


def cut_all(
    talks: Sequence[tuple[Sequence[str], Sequence[str]]], cutting: Cutting = DEFAULT
) -> list[list[int]]:
    """`cut` for many talks, each given as its units and its references."""
    if not all(references for _, references in talks):
        raise DragomanError("There is no reference sentence to cut the output by.")
    tokenize = _mwer_talk if cutting.aligner == "mwer" else _soft_talk
    tokenized = [tokenize(units, references, cutting) for units, references in talks]
    if cutting.aligner == "mwer":
        cuts = [fewest_errors(talk.output, talk.sentences) for talk in tokenized]
    else:
        cuts = _soft_cuts(tokenized, cutting)
    pairs = zip(tokenized, cuts, strict=True)
    return [[bisect_left(talk.of_unit, token) for token in tokens] for talk, tokens in pairs]


@dataclass(frozen=True, slots=True)
class TokenizedTalk:
    """What is compared: tokens of the output and of each sentence of the reference."""

    output: list[str]
    of_unit: Sequence[int]  # for every unit of the output the token it begins in
    sentences: list[list[str]]

    @property
    def reference(self) -> list[str]:
        return [token for sentence in self.sentences for token in sentence]


# --- fewest word errors ---------------------------------------------------------------------------


def _mwer_talk(units: Sequence[str], references: Sequence[str], cutting: Cutting) -> TokenizedTalk:
    """Words as they are; of characters, those up to U+00FF stay together as runs.

    That keeps a Latin word inside Chinese text whole. Only ASCII letters lose their case.
    """
    if cutting.unit == "word":
        sentences = [list(map(_ascii_lower, text.split())) for text in references]
        return TokenizedTalk(list(map(_ascii_lower, units)), range(len(units)), sentences)
    output, of_unit = _latin_runs(units)
    return TokenizedTalk(output, of_unit, [_latin_runs(text)[0] for text in references])


def _latin_runs(characters: Sequence[str]) -> tuple[list[str], list[int]]:
    """Tokens, and for every character the token that it is in."""
    tokens: list[str] = []
    of_unit: list[int] = []
    for latin, run in groupby(characters, key=lambda character: character[:1] <= "\xff"):
        members = list(run)
        of_unit += [len(tokens) + (0 if latin else i) for i in range(len(members))]
        tokens += ["".join(members)] if latin else members
    return list(map(_ascii_lower, tokens)), of_unit


@lru_cache(maxsize=100_000)
def _ascii_lower(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


# --- shared letters -------------------------------------------------------------------------------


def _soft_talk(units: Sequence[str], references: Sequence[str], cutting: Cutting) -> TokenizedTalk:
    """Units without differences of case and width; a reference's white space is no character."""
    output = list(map(_fold, units))
    lowered = [text.strip().lower() for text in references]
    if cutting.unit == "char":
        sentences = [list(map(_fold, text.replace(" ", ""))) for text in lowered]
        return TokenizedTalk(output, range(len(units)), sentences)
    sentences = [list(map(_fold, text.split())) for text in lowered]
    split = _moses(cutting.language) if cutting.language else None
    if split is None:
        return TokenizedTalk(output, range(len(units)), sentences)
    parts = list(map(split, output))
    firsts = np.cumsum([0] + [len(part) for part in parts[:-1]])
    return TokenizedTalk(
        [token for part in parts for token in part],
        firsts.tolist(),
        [[token for word in sentence for token in split(word)] for sentence in sentences],
    )


@lru_cache(maxsize=100_000)
def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


def _soft_cuts(talks: Sequence[TokenizedTalk], cutting: Cutting) -> list[list[int]]:
    """Cuts of the alignments with the greatest sum of similarities."""
    paths = align([(talk.reference, talk.output) for talk in talks], cutting.unit)
    return [_cuts_of_path(path, talk, cutting) for path, talk in zip(paths, talks, strict=True)]


def _cuts_of_path(path: Path, talk: TokenizedTalk, cutting: Cutting) -> list[int]:
    """A token goes to the sentence of the reference token it goes with."""
    reference, end = talk.reference, len(talk.output)
    if not reference:  # nothing to go by: the first sentence has it all
        return [0] + [end] * len(talk.sentences)
    owner = [index for index, sentence in enumerate(talk.sentences) for _ in sentence]
    placed = _placed(path, reference, talk.output, cutting.unit)
    sentence_of = [owner[row] if row >= 0 else -1 for row in placed]
    cuts = [bisect_left(sentence_of, index) for index in range(len(talk.sentences))]
    if not cutting.drop_unplaced:
        cuts[0] = 0
    return [*cuts, end]


def _placed(path: Path, reference: Sequence[str], output: Sequence[str], unit: Unit) -> list[int]:
    """For every token of the output the reference token it goes with, or -1: nowhere.

    A token that is paired goes with its partner. Of a run of tokens between two reference tokens,
    those go with the former that come before the first that is more like the latter.
    """
    placed: list[int] = []
    for row in range(len(reference) + 1):
        former, latter = row - 1, row
        if path.paired[row]:
            placed.append(former)
        goes_with = former
        for token in output[path.entered[row] + path.paired[row] : path.entered[row + 1]]:
            if goes_with == former and latter < len(reference):
                like_former = similarity(reference[former], token, unit) if row else -inf
                if similarity(reference[latter], token, unit) > like_former:
                    goes_with = latter
            placed.append(goes_with)
    return placed


@cache
def _moses(language: str) -> Callable[[str], list[str]] | None:
    """The Moses tokeniser of a language; Chinese and Japanese have none."""
    if language in ("zh", "ja"):
        return None
    try:
        from sacremoses import MosesTokenizer
    except ImportError as error:
        raise DragomanError(
            "Aligning with a language's Moses rules needs the package sacremoses: "
            "install it with pip install 'dragoman[moses]', or leave the language out."
        ) from error
    tokenizer = MosesTokenizer(lang=language)

    @cache
    def split(word: str) -> list[str]:
        parts = tokenizer.tokenize(word, escape=False, aggressive_dash_splits=True)
        # Moses itself leaves a comma on a number at the end of a line; every word is a line here.
        if len(parts) > 1 and parts[-1] == "," and parts[-2][-1].isdigit():
            parts[-2:] = [parts[-2] + ","]
        return [str(part) for part in parts]

    return split
