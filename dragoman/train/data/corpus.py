"""Packs as one training set: lengths and unit ids in flat arrays, sound by number."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.models.exported.net import BOS
from dragoman.train.data.faults import FAULTS, Fault, Faults, read_faults
from dragoman.train.data.pack import Item, Pack
from dragoman.train.data.vocabulary import Pieces
from dragoman.train.recipe import Data

MOST_LETTERS = 60  # a second, twice as fast as anyone speaks: the text is not what is heard


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths in one array: row i is flat[starts[i] : starts[i + 1]]."""

    flat: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Ragged:
        lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.fromiter(chain.from_iterable(rows), np.int32, int(starts[-1]))
        return cls(flat, starts)

    def take(self, numbers: np.ndarray) -> Ragged:
        """Some of the rows."""
        lengths = self.lengths[numbers]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[numbers] - starts[:-1], lengths)
        return Ragged(self.flat[places], starts)

    def padded(self, width: int, fill: int) -> np.ndarray:
        """All rows as [rows, width] int64, filled up."""
        padded = np.full((len(self.lengths), width), fill, np.int64)
        padded[np.arange(width) < self.lengths[:, None]] = self.flat
        return padded

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.diff(self.starts)

    def __getitem__(self, row: int) -> np.ndarray:
        return self.flat[self.starts[row] : self.starts[row + 1]]


@dataclass(frozen=True)
class Part:
    """One item of a training set: which pack, which item in it."""

    pack: int
    item: int


class TrainingSet:
    """The items of some packs that are fit for training, with their texts as unit ids."""

    def __init__(self, packs: list[Pack], parts: list[Part], data: Data):
        self.packs, self.parts, self.data = packs, parts, data
        self.samples = np.array([self.item(n).samples for n in range(len(parts))], np.int64)
        self.silent = packs[0].silent
        self.source = self.target = Ragged.of([[] for _ in parts])
        items = (self.item(n) for n in range(len(parts)))
        phones = data.ends == "phones"
        self.word_ends = Ragged.of([i.phone_ends if phones else i.word_ends for i in items])

        self.first = np.full(len(parts), BOS)  # what a translation begins with
        self.most_words = int(self.word_ends.lengths.max(initial=1))

    def __len__(self) -> int:
        return len(self.parts)

    def item(self, number: int) -> Item:
        part = self.parts[number]
        return self.packs[part.pack].items[part.item]

    def sound(self, number: int) -> np.ndarray:
        part = self.parts[number]
        return self.packs[part.pack].sound(part.item)

    def sounds(self) -> list[str]:
        """Which sound each item has, or which row, if it is text alone: packs may share theirs,
        with other texts."""
        named = {pack: str(one.sounds.resolve()) for pack, one in enumerate(self.packs)}
        shards = (self.packs[part.pack].shard_of[part.item] for part in self.parts)
        items = map(self.item, range(len(self)))
        return [
            f"{named[part.pack]} {shard} {item.offset} {item.id}"
            for part, shard, item in zip(self.parts, shards, items, strict=True)
        ]

    def texts(self, language: str) -> list[str]:
        return [self.item(number).text.get(language, "") for number in range(len(self))]

    def targets(self) -> list[str]:
        """The language that each item is translated into: the first wanted one that it has."""
        wanted = self.data.targets
        if len(wanted) == 1:
            return list(wanted) * len(self)
        texts = (self.item(number).text for number in range(len(self)))
        return [next((code for code in wanted if code in text), wanted[0]) for text in texts]

    def target_texts(self) -> list[str]:
        """The translation of each item."""
        return [self.item(n).text.get(code, "") for n, code in enumerate(self.targets())]

    def with_units(self, source: Pieces, target: Pieces, faults: Faults) -> TrainingSet:
        """The set with its texts encoded; empty or too long ones are left out and counted."""
        targets = target.encode(self.target_texts())
        sources = source.encode(self.texts(self.data.source))
        whole = self
        if len(self.data.targets) > 1:
            # A net that reads finds the language's tag in its source, one that hears begins its
            # target with it.
            told = source if self.silent else target
            tags = {code: told.tag(code) for code in self.data.targets}
            wanted = [tags[code] for code in self.targets()]
            if self.silent:
                both = zip(wanted, sources, strict=True)
                sources = [[tag, *row] if row else row for tag, row in both]
            else:
                whole = copy(self)
                whole.first = np.array(wanted)
        target.check(targets, f"'{self.data.target}'")
        source.check(sources, f"'{self.data.source}'")
        found = {
            number: fault
            for number, (ours, theirs) in enumerate(zip(sources, targets, strict=True))
            if (fault := self._unit_fault(number, ours, theirs))
        }
        for number, fault in found.items():
            part = self.parts[number]
            if faults.is_new(self.packs[part.pack].folder.resolve(), part.item, fault.kind):
                faults.leave_out(fault)
        kept = [number for number in range(len(self)) if number not in found]
        fit = whole.subset(kept)
        fit.source = Ragged.of([sources[number] for number in kept])
        fit.target = Ragged.of([targets[number] for number in kept])
        if fit.silent:  # text is batched as if a unit lasted a tenth of a second
            fit.samples = fit.source.lengths * (RATE // 10)
        return fit

    def subset(self, numbers: Iterable[int]) -> TrainingSet:
        """Some of the items."""
        chosen = np.fromiter(numbers, np.int64)
        some = copy(self)
        some.parts = [self.parts[number] for number in chosen.tolist()]
        some.samples, some.first = self.samples[chosen], self.first[chosen]
        for name in ("source", "target", "word_ends"):
            setattr(some, name, getattr(self, name).take(chosen))
        return some

    def _unit_fault(self, number: int, source: list[int], target: list[int]) -> Fault | None:
        part, item = self.parts[number], self.item(number)
        where = f"{self.packs[part.pack].folder.name} item {item.id}"
        longest = max(len(source), len(target))
        if not target or not source:
            return Fault("empty text", where, "nothing is left of it as units")
        if longest > self.data.max_units:
            return Fault("text too long", where, f"{longest} units")
        letters, seconds = len(item.text[self.data.source]), item.samples / RATE
        if not self.silent and letters > MOST_LETTERS * seconds:
            return Fault(
                "text too long for its sound", where, f"{letters} letters, {seconds:.1f} s"
            )
        return None

    def fingerprint(self) -> str:
        """Changes with any item, text or pack."""
        digest = hashlib.sha256()
        for pack in self.packs:
            digest.update(pack.header.fingerprint.encode())
        digest.update(np.array([(p.pack, p.item) for p in self.parts], np.int64).tobytes())
        for ragged in (self.source, self.target):
            digest.update(ragged.flat.tobytes())
            digest.update(ragged.starts.tobytes())
        return digest.hexdigest()


def open_set(folders: list[Path], data: Data, faults: Faults) -> TrainingSet:
    """The packs in these folders as one set, without items that are too short or too long."""
    packs = [Pack(folder) for folder in folders]
    if len({pack.silent for pack in packs}) > 1:
        raise DragomanError("Packs with sound and packs of text alone cannot be mixed.")
    parts = []
    for number, pack in enumerate(packs):
        _check_languages(pack, data)
        if new := faults.is_new(pack.folder.resolve()):
            faults.seen(len(pack))
            faults.recall(read_faults(pack.folder / FAULTS))
        for place, item in enumerate(pack.items):
            seconds = item.samples / RATE
            if pack.silent or data.min_seconds <= seconds <= data.max_seconds:
                parts.append(Part(number, place))
            elif new:
                where = f"{pack.folder.name} item {item.id}"
                faults.leave_out(Fault("odd length", where, f"{seconds:.1f} s of sound"))
    if not parts:
        raise DragomanError(
            f"There is nothing to train on in {', '.join(map(str, folders))}: {faults.summary()}. "
            f"See data.min_seconds ({data.min_seconds}) and data.max_seconds ({data.max_seconds})."
        )
    return TrainingSet(packs, parts, data)


def hold_out(whole: TrainingSet, items: int, seed: int) -> tuple[TrainingSet, TrainingSet]:
    """Split at random into a set to train on and a small one to validate on.

    A sound that is held out is learned from under no other text either.
    """
    items = min(items, len(whole) // 10)
    if items == 0:
        raise DragomanError(
            f"{len(whole)} items are too few to hold some out for validation; give data.dev."
        )
    order = np.random.default_rng(seed).permutation(len(whole))
    sounds, held = whole.sounds(), sorted(order[:items])
    known = {sounds[number] for number in held}
    kept = [number for number in sorted(order[items:]) if sounds[number] not in known]
    if not kept:
        raise DragomanError(
            f"All {len(whole)} items have the sounds of those held out for validation; give "
            "data.dev."
        )
    return whole.subset(kept), whole.subset(held)


def _check_languages(pack: Pack, data: Data) -> None:
    for wanted in ((data.source,), data.targets):
        if not set(wanted) & set(pack.header.languages):
            has = ", ".join(pack.header.languages)
            codes = "' or '".join(wanted)
            raise DragomanError(f"{pack.folder} has no '{codes}' text; it has {has}.")
