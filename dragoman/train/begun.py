"""Sentences that are cut off, with as much of their translation as can be said by then.

Where only the two texts are known, both are cut at the same share (`data.heard.cut_off`). A teacher
knows better: of the translation of the whole sentence stays what it would have written, unit after
unit, if it had read the beginning alone. A net that learns from such pairs says of a beginning what
is still right at the end, and waits with the rest (prefix alignment: Kano et al. 2022).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from copy import copy
from itertools import takewhile

import torch

from dragoman.train.data.corpus import Ragged, TrainingSet
from dragoman.train.data.heard import words_heard
from dragoman.train.data.loader import Loader
from dragoman.train.data.pack import RATE
from dragoman.train.data.plan import Plan
from dragoman.train.data.vocabulary import UNK, Pieces
from dragoman.train.recipe import Batch
from dragoman.train.trained import Trained

SURE = 0.4  # chance that a teacher must have for every unit that it would have written
MARKS = ",;:"  # that do not end what is cut off

Pair = tuple[str, str]  # a text and its translation


def cut_some(
    teacher: Trained, whole: TrainingSet, said: Mapping[int, str], share: float, batch: Batch
) -> dict[int, Pair]:
    """Of the items of a set and their translations a share, cut off; by the items' numbers in their
    pack. Where nothing can be said yet, the item stays whole."""
    cut: dict[int, str] = {}
    for number, (part, text) in enumerate(
        zip(whole.parts, whole.texts(whole.data.source), strict=True)
    ):
        chance = random.Random(f"{teacher.recipe.seed} {whole.item(number).id}")
        if part.item in said and chance.random() < share and (begun := _begun(text, chance)):
            cut[number] = begun
    if not cut:
        return {}
    texts = _as_units(teacher, whole, cut, said)
    items = [part.item for part in texts.parts]
    sources = dict(zip(items, cut.values(), strict=True))
    kept = {
        items[place]: first_words(teacher.target, texts.target[place].tolist(), count)
        for place, count in _sure_of(teacher, texts, batch).items()
    }
    return {item: (sources[item], text) for item, text in kept.items() if text}


def _begun(text: str, chance: random.Random) -> str:
    """The beginning of a text, or nothing if it has too few words."""
    words = text.split()
    count = words_heard(len(words), chance)
    return " ".join(words[:count]).rstrip(MARKS) if count < len(words) else ""


def _as_units(
    teacher: Trained, whole: TrainingSet, cut: Mapping[int, str], said: Mapping[int, str]
) -> TrainingSet:
    """The items that were cut off, each with the translation of the whole."""
    texts = copy(whole.subset(cut))
    sources = teacher.source.encode(list(cut.values()))
    if len(teacher.recipe.data.targets) > 1:  # the tag of the language stands before
        sources = [[int(whole.source[n][0]), *row] for n, row in zip(cut, sources, strict=True)]
    texts.source = Ragged.of(sources)
    texts.target = Ragged.of(teacher.target.encode([said[part.item] for part in texts.parts]))
    texts.samples = texts.source.lengths * (RATE // 10)
    return texts


def _sure_of(teacher: Trained, texts: TrainingSet, batch: Batch) -> dict[int, int]:
    """How many units of each translation the teacher would write, one after another."""
    task, device = teacher.task, teacher.task.device
    counts: dict[int, int] = {}
    for one in Loader(texts, device=device).batches(enumerate(Plan(texts, batch, 0).once())):
        one = one.to(device)
        with torch.no_grad():
            logits = task.net.decode(one.tokens, task.encode(one))
        chances = logits.softmax(-1).gather(-1, one.labels[..., None])[..., 0]
        sure = (chances >= SURE) & (one.labels > UNK)  # neither the end nor what fills up
        found = sure.long().cumprod(-1).sum(-1).tolist()
        counts.update(zip(map(int, one.items), found, strict=True))
    return counts


def first_words(pieces: Pieces, units: list[int], count: int) -> str:
    """The words that the first units make, without one that goes on behind them."""
    whole, begun = pieces.decode(units).split(), pieces.decode(units[:count]).split()
    same = takewhile(lambda pair: pair[0] == pair[1], zip(whole, begun, strict=False))
    return " ".join(word for word, _ in same).rstrip(MARKS)
