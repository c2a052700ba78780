"""Which items form which batch: a pure function of the seed and the epoch's number.

Items are put into buckets by duration, cut so that the least is padded. A bucket has ONE shape
(items, samples, units), so a GPU sees few shapes and plans its kernels once; an item with unusually
long texts goes to the first bucket that has room for them. Every batch is full: a bucket's last one
is filled up with items from its beginning. Since nothing is remembered between epochs, training can
stop and go on at any batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.train.data.corpus import TrainingSet
from dragoman.train.data.fbank import SHIFT, WINDOW
from dragoman.train.recipe import Batch

STATES, FRAMES_PER_STATE = 8, 4  # lengths are multiples of so many states
_ROOM_FOR_TEXTS = 0.99  # the share of a bucket's items whose texts must fit its shape


@dataclass(frozen=True, slots=True)
class Shape:
    """What a batch is padded to."""

    items: int
    samples: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Place:
    """A batch's place in the endless stream: where to go on after it has been used."""

    epoch: int
    index: int


@dataclass(frozen=True, slots=True)
class Planned:
    """One batch to be: item numbers, and the speed at which each is played."""

    place: Place
    items: np.ndarray
    speeds: np.ndarray
    shape: Shape
    paces: tuple[float, ...] = (1.0,)  # the speeds of all the plan: they decide the batch's width
    text: bool = False  # of the text that a run has beside its speech


class Plan:
    """Batches without end, in an order that the seed and the epoch decide."""

    def __init__(
        self,
        data: TrainingSet,
        batch: Batch,
        seed: int,
        speeds: tuple[float, ...] = (1.0,),
        room: tuple[float, float] = (0.0, 0.0),
    ):
        """`room`: how much longer source and target texts may get than they are."""
        self.seed, self.paces, self.speeds = seed, tuple(speeds), np.array(speeds)
        self.samples = data.samples
        texts = np.stack([data.source.lengths, data.target.lengths + 1])  # EOS
        self.texts = np.ceil(texts * (1 + np.array([room]).T)).astype(np.int64)
        self.batch, self.fit = batch, float if data.silent else aligned
        self.shapes = _shapes(self.samples / min(speeds), self.texts, batch, self.fit)

    def epoch(self, number: int) -> list[Planned]:
        """The batches of one epoch, in order."""
        random = np.random.default_rng([self.seed, number])
        speeds = self.speeds[random.integers(len(self.speeds), size=len(self.samples))]
        buckets = _buckets(played(self.samples, speeds), self.texts, self.shapes)
        groups = []
        for bucket, shape in enumerate(self.shapes):
            members = random.permutation(np.flatnonzero(buckets == bucket))
            if len(members):
                full = -(-len(members) // shape.items) * shape.items
                rows = np.resize(members, full).reshape(-1, shape.items)
                groups += [(row, shape) for row in rows]
        order = random.permutation(len(groups))
        return [
            Planned(Place(number, index), items, speeds[items], shape, self.paces)
            for index, (items, shape) in enumerate(groups[n] for n in order)
        ]

    def stream(self, start: Place) -> Iterator[Planned]:
        """All batches from `start` on, epoch after epoch."""
        epoch, index = start.epoch, start.index
        while True:
            yield from self.epoch(epoch)[index:]
            epoch, index = epoch + 1, 0

    def once(self) -> Iterator[Planned]:
        """Every item exactly once, at its own speed, for validation: batches may be short."""
        shapes = _shapes(self.samples, self.texts, self.batch, self.fit, full=False)
        buckets = _buckets(self.samples, self.texts, shapes)
        for bucket, shape in enumerate(shapes):
            members = np.flatnonzero(buckets == bucket)
            for start in range(0, len(members), shape.items):
                items = members[start : start + shape.items]
                exact = Shape(len(items), shape.samples, shape.source, shape.target)
                yield Planned(Place(0, 0), items, np.ones(len(items)), exact)


def played(samples: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    """Samples that remain when sound is played at a speed."""
    return np.floor(samples / speeds).astype(np.int64)


def unplayed(samples: int, paces: Iterable[float]) -> int:
    """The longest sound of which these speeds leave no more than so many samples: what `played`
    rounds off was recorded, too."""
    fastest = max(paces)
    return samples if fastest == 1 else math.ceil((samples + 1) * fastest)


def _shapes(
    samples: np.ndarray,
    texts: np.ndarray,
    batch: Batch,
    fit: Callable[[float], float],
    full: bool = True,
) -> list[Shape]:
    """At most so many shapes: an epoch, of `full` batches or not, computes least with them."""
    kinds, of_kind = np.unique(samples, return_inverse=True)
    lengths, number = np.unique([int(fit(float(kind))) for kind in kinds], return_inverse=True)
    padded = lengths[number[of_kind]]  # what each item is padded to at least
    room_for = np.array([_items(batch.seconds, length) for length in lengths])
    groups = room_for if full else np.ones_like(room_for)
    shapes: list[Shape] = []
    for first, last in _ranges(lengths, np.bincount(number[of_kind]), groups, batch.buckets):
        members = (padded >= lengths[first]) & (padded <= lengths[last])
        room = np.quantile(texts[:, members], _ROOM_FOR_TEXTS, axis=1)
        source, target = (_up(float(value), 8) for value in room)
        if shapes:  # a longer bucket has room for whatever a shorter one has
            source, target = max(source, shapes[-1].source), max(target, shapes[-1].target)
        shapes.append(Shape(int(room_for[last]), int(lengths[last]), source, target))
    source, target = (_up(float(value), 8) for value in texts.max(axis=1))
    shapes[-1] = replace(shapes[-1], source=source, target=target)
    return shapes


def _items(seconds: float, length: int) -> int:
    """How many items of a length a batch has; many are a multiple of eight."""
    items = max(1, int(seconds * RATE / length))
    return items - items % 8 if items > 8 else items


def _ranges(
    lengths: np.ndarray, counts: np.ndarray, groups: np.ndarray, most: int
) -> list[tuple[int, int]]:
    """The first and the last length of each bucket, at most so many, so that all items, padded to
    their bucket's last length and in whole groups, are the least sound."""
    until = np.concatenate([[0], np.cumsum(counts)])
    least = np.concatenate([[0.0], np.full(len(lengths), np.inf)])  # of the lengths before each
    rounds = []
    for _ in range(most):  # with one bucket more
        better, begins = least.copy(), np.full(len(least), -1)  # -1: one more is no better
        for last, length in enumerate(lengths):
            whole = -(-(until[last + 1] - until[: last + 1]) // groups[last]) * groups[last]
            costs = least[: last + 1] + whole * float(length)
            first = int(costs.argmin())
            if costs[first] < better[last + 1]:
                better[last + 1], begins[last + 1] = costs[first], first
        least = better
        rounds.append(begins)
    found: list[tuple[int, int]] = []
    end = len(lengths)
    for begins in reversed(rounds):
        if begins[end] >= 0:
            found.append((int(begins[end]), end - 1))
            end = int(begins[end])
    return found[::-1]


def _buckets(samples: np.ndarray, texts: np.ndarray, shapes: list[Shape]) -> np.ndarray:
    """The first bucket with room for each item."""
    found = np.full(len(samples), -1)
    for number, shape in enumerate(shapes):
        fits = (samples <= shape.samples) & (texts[0] <= shape.source) & (texts[1] <= shape.target)
        found[(found < 0) & fits] = number
    return found


def aligned(samples: float) -> int:
    """The next length whose states of 40 ms are a multiple of 8: products of such matrices are
    several times faster on a GPU."""
    frames = _up((samples - WINDOW) / SHIFT + 1, STATES * FRAMES_PER_STATE)
    return WINDOW + (frames - 1) * SHIFT


def _up(value: float, step: int) -> int:
    return int(-(-value // step) * step)
