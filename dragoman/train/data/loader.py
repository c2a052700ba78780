"""Planned batches become tensors, prepared by threads ahead of the step that needs them.

Threads suffice: reading a memory map and decoding both release the interpreter's lock, and all
heavy work (resampling, features, augmentation) is done for the whole batch on the device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from dragoman.train.data.corpus import Ragged, TrainingSet
from dragoman.train.data.plan import Place, Planned, played
from dragoman.train.data.vocabulary import BOS, EOS, PAD

AHEAD = 4  # batches in preparation


class Batch(SimpleNamespace):
    """One batch: [B, ...] padded to the shape of its bucket.

    A namespace and no dataclass, because Lightning takes dataclasses apart on their way to a net.
    """

    place: Place
    number: int  # of the micro-batch since the start of training: it seeds all chance
    items: np.ndarray
    width: int  # samples that the batch is padded to, once played at its speeds
    perturbed: bool  # is any speed not 1
    sound: Tensor  # int16 [B, samples as recorded]
    samples: Tensor  # [B] once played
    speeds: Tensor  # [B]
    source: Tensor  # unit ids [B, S]
    source_lengths: Tensor
    tokens: Tensor  # BOS and target ids [B, U]
    labels: Tensor  # target ids and EOS [B, U]
    target_lengths: Tensor  # EOS included
    word_ends: Tensor  # ms [B, W], -1 past the last word

    @property
    def units(self) -> int:
        """Target units to be predicted, which every loss is divided by."""
        return int(self.target_lengths.sum())

    def to(self, device: torch.device) -> Batch:
        return self.each(lambda tensor: tensor.to(device, non_blocking=True))

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with every tensor changed."""
        changed = {
            name: change(value) if isinstance(value, Tensor) else value
            for name, value in vars(self).items()
        }
        return Batch(**changed)


class Loader:
    """Makes batches of a training set; with `resident` all its sound waits in one tensor."""

    def __init__(
        self,
        data: TrainingSet,
        threads: int = 4,
        resident: str = "disk",
        device: torch.device | str = "cpu",
    ):
        self.data, self.threads = data, threads
        self.pinned = torch.device(device).type == "cuda"
        self.starts: np.ndarray | None = None
        self.all_sound: Tensor | None = None
        if resident != "disk" and not data.silent:
            self._fill(torch.device(device) if resident == "device" else torch.device("cpu"))

    def _fill(self, device: torch.device) -> None:
        self.starts = np.concatenate([[0], np.cumsum(self.data.samples)])
        self.all_sound = torch.empty(int(self.starts[-1]), dtype=torch.int16, device=device)

        def copy(number: int) -> None:
            sound = torch.from_numpy(np.array(self.data.sound(number)))
            self.all_sound[self.starts[number] : self.starts[number + 1]] = sound

        with ThreadPoolExecutor(self.threads) as pool:
            deque(pool.map(copy, range(len(self.data))), maxlen=0)

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
        shape, items, data = planned.shape, planned.items, self.data
        lengths = data.samples[items]
        source, source_lengths = _padded(data.source, items, shape.source)
        target, target_lengths = _padded(data.target, items, shape.target)
        longest = int(data.word_ends.lengths.max(initial=1))
        ends, _ = _padded(data.word_ends, items, longest, fill=-1)
        ends = np.where(ends < 0, ends, (ends / planned.speeds[:, None]).astype(np.int64))
        labels = target.copy()
        labels[np.arange(len(items)), target_lengths] = EOS
        tokens = np.concatenate([np.full((len(items), 1), BOS), target[:, :-1]], axis=1)
        batch = Batch(
            place=planned.place,
            number=number,
            items=items,
            width=shape.samples,
            perturbed=bool((planned.speeds != 1).any()),
            sound=self._sound(items, int(np.ceil(shape.samples * planned.speeds.max()))),
            samples=torch.from_numpy(played(lengths, planned.speeds)),
            speeds=torch.from_numpy(planned.speeds).float(),
            source=torch.from_numpy(source),
            source_lengths=torch.from_numpy(source_lengths),
            tokens=torch.from_numpy(tokens),
            labels=torch.from_numpy(labels),
            target_lengths=torch.from_numpy(target_lengths + 1),
            word_ends=torch.from_numpy(ends),
        )
        return batch.each(_pin) if self.pinned else batch

    def _sound(self, items: np.ndarray, width: int) -> Tensor:
        """[B, width] int16, zero past each item's end."""
        if self.data.silent:
            return torch.zeros(len(items), 0, dtype=torch.int16)
        lengths = self.data.samples[items]
        if self.all_sound is None:
            sound = np.zeros((len(items), width), np.int16)
            for row, number in enumerate(items):
                sound[row, : lengths[row]] = self.data.sound(number)
            return torch.from_numpy(sound)
        device = self.all_sound.device
        starts = torch.from_numpy(self.starts[items]).to(device)
        ends = starts + torch.from_numpy(lengths).to(device)
        places = starts.unsqueeze(1) + torch.arange(width, device=device)
        inside = places < ends.unsqueeze(1)
        return self.all_sound[torch.where(inside, places, 0)] * inside


def _padded(
    rows: Ragged, items: np.ndarray, width: int, fill: int = PAD
) -> tuple[np.ndarray, np.ndarray]:
    """Rows as [B, width] int64, filled up, and their lengths."""
    padded = np.full((len(items), width), fill, np.int64)
    lengths = rows.lengths[items]
    for place, number in enumerate(items):
        padded[place, : lengths[place]] = rows[number]
    return padded, lengths.astype(np.int64)


def _pin(tensor: Tensor) -> Tensor:
    """Pinned memory lets the copy to the GPU overlap with its work."""
    return tensor.pin_memory() if tensor.device.type == "cpu" else tensor
