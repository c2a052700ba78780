"""Moonshine's encoder in steps, and behind it, in the same steps, the layers that read its states.

Several states become one, which is what those layers read. As in Moonshine's own, one is final once
so many lie behind it: its keys and values are kept, and newer ones look at those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dragoman.models.exported.net import Array, Arrays, OnnxNet
from dragoman.models.graphs import Graphs
from dragoman.models.moonshine.encoder import (
    Encoded,
    Encoder,
    Labels,
    Layers,
    Pace,
    filled,
    mask_beyond,
    no_labels,
)
from dragoman.models.moonshine.tongue import no_judgement, tongues
from dragoman.models.search import Floats
from dragoman.models.whisper.weights import Weights

TIME = 3  # the axis of kept keys and values, `[1, layers, heads, time, width]`


@dataclass(frozen=True, slots=True, eq=False)
class Heard(Encoded):
    """A window as far as it was encoded and read."""

    read: int = 0  # joined states that will not change,
    kept: Arrays = ()  # their keys and values in the layers that read them,
    units: Labels = field(default_factory=no_labels)  # and what the CTC head hears in them
    texts: Arrays = ()  # what the decoder reads, of all joined states

    @property
    def joined(self) -> int:
        """Joined states, final or not."""
        return self.texts[0].shape[TIME] if self.texts else 0


class GraftedNet(OnnxNet):
    """A folder whose `encoder.onnx` goes on reading states."""

    def read(self, inputs: Sequence[Array]) -> Arrays:
        """Groups of states, their places, what must not be looked at, and kept keys and values:
        what the CTC head hears, what the decoder reads, and the new keys and values."""
        return self._run(self._encoder, inputs)


class GraftedEncoder(Encoder):
    """The encoder of one model."""

    def __init__(self, weights: Weights, graphs: Graphs, net: GraftedNet) -> None:
        """`weights` are Moonshine's."""
        settings = net.config.settings
        self._joined = int(settings["joined"])
        pace = Pace(settings["ahead"], settings["chunk"]) if settings["chunk"] else Pace()
        self._ahead = -(-pace.ahead // self._joined)
        exact = net.config.precision == "float32"
        judge = tongues().get(int(settings["ears_size"]), no_judgement)
        super().__init__(weights, graphs, _as_they_are, pace=pace, exact=exact, judge=judge)
        self._net = net
        width = settings["size"] // settings["heads"]
        shape = (1, settings["encoder_layers"], settings["heads"], 0, width)
        self._none_kept = (np.zeros(shape, np.float32),) * 2

    def _look(self, windows: Sequence[Encoded]) -> list[Encoded]:
        return self._read(super()._look(windows))

    def _read(self, windows: Sequence[Any]) -> list[Encoded]:
        """The windows with what the layers make of states that were new, or not final."""
        groups = [self._groups(window) for window in windows]
        counts, before = [len(new) for new in groups], [window.read for window in windows]
        longest, most = max(counts), max(before)
        past = [window.kept or self._none_kept for window in windows]
        labels, *made = self._net.read(
            (
                np.stack([filled(new, longest, 0) for new in groups]),
                np.array(before)[:, None] + np.arange(longest),
                mask_beyond(before, counts),
                *(
                    np.concatenate([filled(one[part], most, TIME) for one in past])
                    for part in range(2)
                ),
            )
        )
        read: list[Encoded] = []
        for index, (window, count) in enumerate(zip(windows, counts, strict=True)):
            mine = [array[index : index + 1, :, :, :count] for array in made]
            read.append(self._with(window, labels[index, :count], tuple(mine)))
        return read

    def _groups(self, window: Heard) -> Floats:
        """The states that are read now, as many side by side as become one: `[n, joined * width]`;
        nothing stands where the last one is not whole."""
        states = window.memory["states"][0, 0, window.read * self._joined :]
        count = -(-len(states) // self._joined)
        return filled(states, count * self._joined, 0).reshape(count, -1)

    def _with(self, window: Heard, labels: Labels, made: Arrays) -> Heard:
        whole = window.seen // self._joined - window.read
        ripe = max(0, whole - self._ahead)
        texts, keys = made[:2], made[2:]
        old = [array[:, :, :, : window.read] for array in window.texts]
        return replace(
            window,
            read=window.read + ripe,
            kept=_longer(window.kept, [array[:, :, :, :ripe] for array in keys]),
            units=np.concatenate([window.units, labels[:ripe]]),
            texts=_longer(old, texts),
            labels=np.concatenate([window.units, labels]),
        )


def _as_they_are(states: Floats) -> Layers:
    return {"states": states[None, None]}


def _longer(before: Sequence[Array], after: Sequence[Array]) -> Arrays:
    """Arrays of a window's own: for the sake of a part, all that a batch made would be kept."""
    if not before:
        return tuple(array.copy() for array in after)
    return tuple(np.concatenate(pair, axis=TIME) for pair in zip(before, after, strict=True))
