"""Sentences that a translator searches together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from dragoman.models.cascade.owners import nothing
from dragoman.models.cascade.translator import Sentence, Translation
from dragoman.models.search import Found

R = TypeVar("R")  # a sentence as a translator reads it


def translated(
    sentences: Sequence[Sentence],
    read: Callable[[Sentence], R | None],
    alike: Callable[[R], Hashable],
    search: Callable[[Sequence[R]], Sequence[Found]],
    written: Callable[[Sentence, R, Found], Translation],
) -> list[Translation]:
    """Read every sentence, search for those that are `alike` at once, write down what was found.

    `read` returns None where there is nothing to translate.
    """
    readings: dict[int, R] = {}
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place, sentence in enumerate(sentences):
        reading = read(sentence)
        if reading is not None:
            readings[place] = reading
            groups[alike(reading)].append(place)
    found: dict[int, Found] = {}
    for places in groups.values():
        made = search([readings[place] for place in places])
        found.update(zip(places, made, strict=True))
    return [
        written(one, readings[place], found[place])
        if place in found
        else nothing(one.said, len(one.words))
        for place, one in enumerate(sentences)
    ]
