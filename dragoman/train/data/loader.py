"""Planned batches become tensors, prepared by threads ahead of the step that needs them.

Threads suffice: reading a memory map and decoding both release the interpreter's lock, and all
heavy work (resampling, features, augmentation) is done for the whole batch on the device.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.models.exported.net import EOS, PAD
from dragoman.train.data.bpe_dropout import ROOM, BpeDropout
from dragoman.train.data.corpus import Ragged, TrainingSet
from dragoman.train.data.plan import Place, Planned, played, unplayed
from dragoman.train.data.vocabulary import Pieces

if TYPE_CHECKING:
    from dragoman.train.data.states import KeptStates

AHEAD = 4  # batches in preparation
TOGETHER = 500  # items whose sound goes to the device in one copy


class Batch(SimpleNamespace):
    """One batch: [B, ...] padded to the shape of its bucket.

    A namespace and no dataclass, because Lightning takes dataclasses apart on their way to a net.
    """

    place: Place
    number: int  # of the micro-batch since the start of training: it seeds all chance
    items: np.ndarray
    width: int  # samples that the batch is padded to, once played at its speeds
    perturbed: bool  # may any speed not be 1
    sound: Tensor  # int16 [B, samples as recorded]
    samples: Tensor  # [B] once played
    speeds: Tensor  # [B]
    source: Tensor  # unit ids [B, S]
    source_lengths: Tensor
    tokens: Tensor  # BOS, or the tag of a language, and target ids [B, U]
    labels: Tensor  # target ids and EOS [B, U]
    target_lengths: Tensor  # EOS included
    word_ends: Tensor  # ms [B, W], -1 past the last word
    # In place of sound, what an encoder that is not trained has made of it: [B, S, D] and [B].
    states: Tensor | None = None
    state_lengths: Tensor | None = None

    @property
    def units(self) -> int:
        """Target units to be predicted, which every loss is divided by."""
        return int(self.target_lengths.sum())

    @property
    def heard(self) -> bool:
        """Whether it is of speech; the samples of texts are only what they are batched by."""
        return self.states is not None or self.sound.shape[1] > 0

    def to(self, device: torch.device) -> Batch:
        return self.each(lambda tensor: tensor.to(device, non_blocking=True))

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with every tensor changed."""
        changed = {
            name: change(value) if isinstance(value, Tensor) else value
            for name, value in vars(self).items()
        }
        return Batch(**changed)


class Recut(NamedTuple):
    """Texts in other units every time they are seen; the batch's number seeds the chance."""

    source: BpeDropout | None = None
    target: BpeDropout | None = None
    seed: int = 0

    @classmethod
    def of(cls, source: Pieces, target: Pieces, seed: int) -> Recut:
        """As the vocabularies' settings have it."""

        def cut(side: Pieces) -> BpeDropout | None:
            return BpeDropout(side) if side.units.dropout else None

        return cls(cut(source), cut(target), seed)

    @property
    def room(self) -> tuple[float, float]:
        """How much longer texts may get, for the plan of batches."""
        source, target = (ROOM * side.share if side else 0.0 for side in self[:2])
        return source, target


class Loader:
    """Makes batches of a training set; with `resident` all its sound waits in one tensor.

    Batches that are planned as text are of the set `text`.
    """

    def __init__(
        self,
        data: TrainingSet,
        threads: int = 4,
        resident: str = "disk",
        device: torch.device | str = "cpu",
        recut: Recut | None = None,
        text: TrainingSet | None = None,
        states: KeptStates | None = None,
    ):
        self.data, self.threads, self.recut = data, threads, recut or Recut()
        self.text, self.states = text, states
        self.pinned = torch.device(device).type == "cuda"
        self._resident: tuple[np.ndarray, Tensor] | None = None
        if resident != "disk" and not data.silent and states is None:
            there = torch.device(device) if resident == "device" else torch.device("cpu")
            self._resident = self._fill(there)

    def _fill(self, device: torch.device) -> tuple[np.ndarray, Tensor]:
        """Where each item's sound begins, and the sound of all."""
        starts = np.concatenate([[0], np.cumsum(self.data.samples)])
        all_sound = torch.empty(int(starts[-1]), dtype=torch.int16, device=device)

        def copy(first: int) -> None:
            block = range(first, min(first + TOGETHER, len(self.data)))
            sound = np.concatenate([self.data.sound(number) for number in block])
            all_sound[starts[first] : starts[block.stop]] = torch.from_numpy(sound)

        with ThreadPoolExecutor(self.threads) as pool:
            deque(pool.map(copy, range(0, len(self.data), TOGETHER)), maxlen=0)
        return starts, all_sound

    def batches(self, plan: Iterable[tuple[int, Planned]]) -> Iterator[Batch]:
        """Batches for (number, planned) pairs, a few of them in preparation at any time."""
        pool = ThreadPoolExecutor(self.threads)
        coming: deque[Future[Batch]] = deque()
        try:
            for number, planned in plan:
                coming.append(pool.submit(self.make, number, planned))
                if len(coming) > AHEAD:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def make(self, number: int, planned: Planned) -> Batch:
        shape, items = planned.shape, planned.items
        data = self.text if planned.text else self.data
        assert data is not None  # who plans texts has some
        lengths = data.samples[items]
        recut, chance = self.recut, random.Random(f"{self.recut.seed} {number}")
        sources = _rows(data.source, items, recut.source, shape.source, chance)
        targets = _rows(data.target, items, recut.target, shape.target - 1, chance)
        source, target = sources.padded(shape.source, PAD), targets.padded(shape.target, PAD)
        ends = data.word_ends.take(items).padded(data.most_words, -1)
        ends = np.where(ends < 0, ends, (ends / planned.speeds[:, None]).astype(np.int64))
        labels = target.copy()
        labels[np.arange(len(items)), targets.lengths] = EOS
        tokens = np.concatenate([data.first[items, None], target[:, :-1]], axis=1)
        batch = Batch(
            place=planned.place,
            number=number,
            items=items,
            width=shape.samples,
            perturbed=any(pace != 1 for pace in planned.paces),
            sound=self._sound(data, items, unplayed(shape.samples, planned.paces)),
            samples=torch.from_numpy(played(lengths, planned.speeds)),
            speeds=torch.from_numpy(planned.speeds).float(),
            source=torch.from_numpy(source),
            source_lengths=torch.from_numpy(sources.lengths),
            tokens=torch.from_numpy(tokens),
            labels=torch.from_numpy(labels),
            target_lengths=torch.from_numpy(targets.lengths + 1),
            word_ends=torch.from_numpy(ends),
        )
        if self.states is not None and not planned.text:
            batch.states, batch.state_lengths = self.states.take(items, shape.samples)
        return batch.each(_pin) if self.pinned else batch

    def _sound(self, data: TrainingSet, items: np.ndarray, width: int) -> Tensor:
        """[B, width] int16, zero past each item's end; width 0 where there is only text."""
        if data.silent or self.states is not None:
            return torch.zeros(len(items), 0, dtype=torch.int16)
        lengths = data.samples[items]
        if self._resident is None:
            sound = np.zeros((len(items), width), np.int16)
            for row, number in enumerate(items):
                sound[row, : lengths[row]] = data.sound(number)
            return torch.from_numpy(sound)
        all_starts, all_sound = self._resident
        device = all_sound.device
        starts = on_device(all_starts[items], device)
        ends = starts + on_device(lengths, device)
        places = starts.unsqueeze(1) + torch.arange(width, device=device)
        inside = places < ends.unsqueeze(1)
        return all_sound[torch.where(inside, places, 0)] * inside


def _rows(
    rows: Ragged,
    items: np.ndarray,
    recut: BpeDropout | None,
    most: int,
    chance: random.Random,
) -> Ragged:
    """The rows of some items, cut anew if there is a `recut`."""
    if recut is None:
        return rows.take(items)
    return Ragged.of([recut.within(rows[number].tolist(), most, chance) for number in items])


def _pin(tensor: Tensor) -> Tensor:
    """Pinned memory lets the copy to the GPU overlap with its work."""
    return tensor.pin_memory() if tensor.device.type == "cpu" else tensor


def on_device(numbers: np.ndarray, device: torch.device) -> Tensor:
    """A copy that is asked for and not waited for: plain memory would be copied only once the
    device has done all its work, and training would wait for data that are long made."""
    tensor = torch.from_numpy(numbers)
    return _pin(tensor).to(device, non_blocking=True) if device.type == "cuda" else tensor
