"""Sentences that are cut off, with as much of their translation as can be said by then.

Where only the two texts are known, both are cut at the same share (`data.heard.cut_off`). A teacher
knows better: of the translation of the whole sentence stays what it would have written as readily,
unit after unit, if it had read the beginning alone. A net that learns from such pairs says of a
beginning what is still right at the end, and waits with the rest (after the prefix alignment of
Kano et al. 2022).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import takewhile

import torch

from dragoman.audio.chunk import RATE
from dragoman.text.sentences import without_comma
from dragoman.train.data.corpus import Ragged, TrainingSet
from dragoman.train.data.heard import together, words_heard, words_in
from dragoman.train.data.loader import Loader
from dragoman.train.data.plan import Plan
from dragoman.train.data.vocabulary import Pieces
from dragoman.train.recipe import Batch
from dragoman.train.trained import Trained

# Of the chance that a unit has for a teacher who has read the whole. Where that is small, too,
# there are many words for the same thing; where it is not, the word hangs on what comes.
AS_LIKELY = 0.5
# All units of a translation at once, each with its chances for the whole vocabulary, take far more
# room than one unit at a time, as a search does it: batches have so much less in them.
LESS = 12

Pair = tuple[str, str]  # a text and its translation


def cut_some(
    teacher: Trained,
    whole: TrainingSet,
    said: Mapping[int, str],
    languages: Pair,
    share: float,
    batch: Batch,
) -> dict[int, Pair]:
    """Of the items of a set and their translations a share, cut off; by the items' numbers in their
    pack. Where nothing can be said yet, the item stays whole."""
    spoken, written = languages
    cut: dict[int, str] = {}
    for number, (part, text) in enumerate(
        zip(whole.parts, whole.texts(whole.data.source), strict=True)
    ):
        chance = random.Random(f"{teacher.recipe.seed} {whole.item(number).id}")
        if part.item not in said or chance.random() >= share:
            continue
        if begun := _begun(text, spoken, chance):
            cut[number] = begun
    if not cut:
        return {}
    items = [whole.parts[number].item for number in cut]
    targets = teacher.target.encode([said[item] for item in items])
    texts = whole.subset(cut)
    texts.target = Ragged.of(targets)
    known = _chances(teacher, texts, batch)
    expected = _chances(teacher, _cut_short(teacher, texts, list(cut.values())), batch)
    kept = {}
    for place, (item, source, units) in enumerate(zip(items, cut.values(), targets, strict=True)):
        count = as_likely(expected[place], known[place])
        if text := first_words(teacher.target, units, count, written):
            kept[item] = (source, text)
    return kept


def _begun(text: str, language: str, chance: random.Random) -> str:
    """The beginning of a text, or nothing if it has too few words."""
    words = words_in(text, language)
    count = words_heard(len(words), chance)
    return without_comma(together(words[:count], language)) if count < len(words) else ""


def _cut_short(teacher: Trained, texts: TrainingSet, sources: list[str]) -> TrainingSet:
    """The same translations with other sources."""
    units = teacher.source.encode(sources)
    if len(teacher.recipe.data.targets) > 1:  # the tag of the language stands before
        units = [[int(texts.source[place][0]), *row] for place, row in enumerate(units)]
    short = copy(texts)
    short.source = Ragged.of(units)
    short.samples = short.source.lengths * (RATE // 10)
    return short


def _chances(teacher: Trained, texts: TrainingSet, batch: Batch) -> dict[int, list[float]]:
    """Of each item, the chances that the units of its translation have for the teacher."""
    task, device = teacher.task, teacher.task.device
    chances: dict[int, list[float]] = {}
    plan = Plan(texts, replace(batch, seconds=batch.seconds / LESS), 0).once()
    for one in Loader(texts, device=device).batches(enumerate(plan)):
        one = one.to(device)
        with torch.no_grad():
            logits = task.net.decode(one.tokens, task.encode(one))
        found = logits.softmax(-1).gather(-1, one.labels[..., None])[..., 0].tolist()
        for item, row in zip(map(int, one.items), found, strict=True):
            chances[item] = row[: int(texts.target.lengths[item])]
    return chances


def as_likely(expected: Sequence[float], known: Sequence[float]) -> int:
    """How many units, one after another, are nearly as likely as if the whole were known."""
    pairs = zip(expected, known, strict=True)
    return sum(1 for _ in takewhile(lambda pair: pair[0] >= AS_LIKELY * pair[1], pairs))


def first_words(pieces: Pieces, units: list[int], count: int, language: str) -> str:
    """The words that the first units make, without one that goes on behind them."""
    whole, begun = (words_in(pieces.decode(some), language) for some in (units, units[:count]))
    same = takewhile(lambda pair: pair[0] == pair[1], zip(whole, begun, strict=False))
    return without_comma(together([word for word, _ in same], language))
