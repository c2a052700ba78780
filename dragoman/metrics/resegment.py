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
from numpy.typing import NDArray

from dragoman.errors import DragomanError
from dragoman.metrics.alignment import Floats, Path, Problem, best_path
from dragoman.metrics.edits import fewest_errors
from dragoman.metrics.instance import Unit

Aligner = Literal["soft", "mwer"]
ALIGNERS: tuple[Aligner, ...] = ("soft", "mwer")

# A lone one of these never pairs with a word in soft alignment.
PUNCTUATION = frozenset(".!?,;:-()。！？，；：—ー（）")


@dataclass(frozen=True, slots=True)
class Tokens:
    """What is compared: tokens, and for every unit of the text the token it begins in."""

    texts: list[str]
    of_unit: Sequence[int]


def cut(
    units: Sequence[str],
    references: Sequence[str],
    *,
    unit: Unit = "word",
    aligner: Aligner = "soft",
    language: str | None = None,
    drop_unplaced: bool = False,
) -> list[int]:
    """Where to cut `units` (words or characters) so that piece i goes with reference i.

    Returns one number more than there are references: piece i is `units[cuts[i]:cuts[i + 1]]`.
    With a `language` soft alignment first splits off punctuation by that language's Moses rules.

    Soft alignment finds no place for stray punctuation before the very first word. It goes to
    the first sentence, unless `drop_unplaced`: then the first cut is after it, as in OmniSTEval.
    """
    if not references:
        raise DragomanError("There is no reference sentence to cut the output by.")
    if aligner == "mwer":
        hypothesis = _mwer_tokens(units, unit)
        sentences = [_mwer_tokens(_units_of(text, unit), unit).texts for text in references]
        cuts = fewest_errors(hypothesis.texts, sentences)
    else:
        split = _moses(language) if language and unit == "word" else None
        hypothesis = _soft_tokens(units, split)
        sentences = [_soft_tokens(_lower_units(text, unit), split).texts for text in references]
        cuts = _soft_cuts(hypothesis.texts, sentences, unit)
        if not drop_unplaced:
            cuts[0] = 0
    return [bisect_left(hypothesis.of_unit, token) for token in cuts]


def _units_of(text: str, unit: Unit) -> list[str]:
    return text.split() if unit == "word" else list(text)


def _lower_units(text: str, unit: Unit) -> list[str]:
    """The units of a reference for soft alignment, where white space is no character."""
    lowered = text.strip().lower()
    return lowered.split() if unit == "word" else list(lowered.replace(" ", ""))


# --- fewest word errors ---------------------------------------------------------------------------


def _mwer_tokens(units: Sequence[str], unit: Unit) -> Tokens:
    """Words as they are; of characters, those up to U+00FF stay together as runs.

    That keeps a Latin word inside Chinese text whole. Only ASCII letters lose their case.
    """
    if unit == "word":
        return Tokens(list(map(_ascii_lower, units)), range(len(units)))
    texts: list[str] = []
    of_unit: list[int] = []
    for latin, run in groupby(units, key=lambda character: character[:1] <= "\xff"):
        members = list(run)
        of_unit += [len(texts) + (0 if latin else i) for i in range(len(members))]
        texts += ["".join(members)] if latin else members
    return Tokens(list(map(_ascii_lower, texts)), of_unit)


@lru_cache(maxsize=100_000)
def _ascii_lower(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


# --- shared letters -------------------------------------------------------------------------------


def _soft_tokens(units: Sequence[str], split: Callable[[str], list[str]] | None) -> Tokens:
    """Units without differences of case and width, each cut further by `split`."""
    folded = list(map(_fold, units))
    if split is None:
        return Tokens(folded, range(len(units)))
    parts = list(map(split, folded))
    firsts = np.cumsum([0] + [len(part) for part in parts[:-1]])
    return Tokens([token for part in parts for token in part], firsts.tolist())


@lru_cache(maxsize=100_000)
def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


def _soft_cuts(
    hypothesis: Sequence[str], sentences: Sequence[Sequence[str]], unit: Unit
) -> list[int]:
    """Cuts of the alignment with the greatest sum of similarities.

    A token that is paired goes to its partner's sentence. A run of tokens between two reference
    tokens goes to the former's sentence up to the first token that is more like the latter.
    """
    reference = [token for sentence in sentences for token in sentence]
    if not reference:  # nothing to go by: the first sentence has it all
        return [0] + [len(hypothesis)] * len(sentences)
    path = best_path(
        Problem(
            rows=len(reference),
            columns=len(hypothesis),
            gain=lambda row, column: similarity(reference[row], hypothesis[column], unit),
            gains=_similarities(reference, hypothesis, unit),
        )
    )
    owner = [index for index, sentence in enumerate(sentences) for _ in sentence]
    placed = _placed(path, reference, hypothesis, unit)
    sentence_of = [owner[row] if row >= 0 else -1 for row in placed]
    return [*(bisect_left(sentence_of, index) for index in range(len(sentences))), len(hypothesis)]


def _placed(
    path: Path, reference: Sequence[str], hypothesis: Sequence[str], unit: Unit
) -> list[int]:
    """For every hypothesis token the reference token it goes with, or -1: nowhere."""
    placed: list[int] = []
    for row in range(len(reference) + 1):
        former, latter = row - 1, row
        if path.paired[row]:
            placed.append(former)
        goes_with = former
        for token in hypothesis[path.entered[row] + path.paired[row] : path.entered[row + 1]]:
            if goes_with == former and latter < len(reference):
                like_former = similarity(reference[former], token, unit) if row else -inf
                if similarity(reference[latter], token, unit) > like_former:
                    goes_with = latter
            placed.append(goes_with)
    return placed


def similarity(one: str, other: str, unit: Unit) -> float:
    """How alike two tokens are: the share of letters in common (words), or equality (characters).

    Punctuation and anything else are infinitely unlike.
    """
    if (one in PUNCTUATION) != (other in PUNCTUATION):
        return -inf
    if unit == "char":
        return float(one == other)
    ones, others = _letters(one), _letters(other)
    common = len(ones & others)
    return common / max(len(ones) + len(others) - common, 1)


@lru_cache(maxsize=100_000)
def _letters(token: str) -> frozenset[str]:
    return frozenset(token)


def _similarities(
    reference: Sequence[str], hypothesis: Sequence[str], unit: Unit
) -> Callable[[int, int], Floats]:
    """`similarity` of a block of reference tokens with all of the output, as one matrix."""
    numbers, distinct = _numbers([*reference, *hypothesis])
    rows, columns = numbers[: len(reference)], numbers[len(reference) :]
    marks = np.array([token in PUNCTUATION for token in distinct], dtype=bool)
    letters = _letter_sets(distinct)
    sizes = np.bitwise_count(letters).sum(axis=1, dtype=np.intp)
    # The share of letters in common, by how many these are and how many both tokens have.
    common, total = np.indices((sizes.max() + 1, 2 * sizes.max() + 1))
    shares: Floats = common / np.maximum(total - common, 1)

    def block(begin: int, end: int) -> Floats:
        own = rows[begin:end, None]
        alike: Floats
        if unit == "char":
            alike = (own == columns).astype(float)
        else:
            place = sizes[own] + sizes[columns]
            for group in letters.T:
                place += shares.shape[1] * np.bitwise_count(group[own] & group[columns]).astype(int)
            alike = shares.ravel().take(place, mode="clip")  # faster, and all are inside
        if marks.any():
            alike[marks[own] != marks[columns]] = -inf
        return alike

    return block


def _numbers(tokens: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Tokens as numbers, and the distinct tokens in the order of their numbers."""
    distinct = list(dict.fromkeys(tokens))
    codes = {token: number for number, token in enumerate(distinct)}
    return np.fromiter(map(codes.__getitem__, tokens), np.int64, len(tokens)), distinct


def _letter_sets(tokens: Sequence[str]) -> NDArray[np.uint64]:
    """The letters of each token as bits, 64 letters to a number. [tokens, numbers]"""
    text = "".join(tokens).encode("utf-32-le", "surrogatepass")
    alphabet, letter = np.unique(np.frombuffer(text, dtype=np.uint32), return_inverse=True)
    token = np.repeat(np.arange(len(tokens)), [len(token) for token in tokens])
    sets = np.zeros((len(tokens), len(alphabet) // 64 + 1), dtype=np.uint64)
    np.bitwise_or.at(sets, (token, letter // 64), np.uint64(1) << (letter % 64).astype(np.uint64))
    return sets


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
