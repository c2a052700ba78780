"""What the encoder makes of a window, and of the same window when more of it has been heard.

Every state sees the whole window, so strictly all of them change with each new sound. Those that
had enough sound behind them when they were made hardly do: they are kept, with their keys and
values in every layer, and only the newest are made again. So are, of the silence behind the sound,
the states next to it and those that come anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.models.graphs import Graphs
from dragoman.models.search import Floats
from dragoman.models.whisper.encoder_graph import embedding_graph, encoder_graph
from dragoman.models.whisper.graph import Shape
from dragoman.models.whisper.mel import Mel
from dragoman.models.whisper.weights import Weights

BEHIND = 100  # states of sound behind a state with which it is as good as it gets: 2 s
NEXT = 50  # states of silence that the newest sound changes
REACH = 2  # states to each side that the convolutions look at, and a little more
EDGE = 3  # states at the edge of the sound whose frames change when it goes on

Layers = dict[str, Floats]  # keys and values by name, `[1, heads, states, head width]`


@dataclass(frozen=True, slots=True)
class Encoded:
    """A window: all that is made of it, state by state."""

    embedded: Floats  # [states, width], by the convolutions
    layers: Layers  # the encoder's own
    memory: Layers  # what the decoder makes of the states
    sound: int  # states of sound; the others are of the silence behind it

    def __len__(self) -> int:
        return len(self.embedded)


@dataclass(frozen=True, slots=True)
class Plan:
    """Which states are made now, of `total`: those from `begin` to `end`, and those behind the ones
    that are `known`; others are kept."""

    begin: int
    end: int
    known: int
    total: int

    @classmethod
    def around(cls, before: Encoded | None, sound: int, total: int, reach: tuple[int, int]) -> Plan:
        """For a window with so many states of sound: `reach` is how far back from where the sound
        ended before, and how far beyond where it ends now, states are made again."""
        if before is None:
            return cls(0, total, 0, total)
        begin = max(0, min(before.sound, sound) - reach[0])
        return cls(begin, min(sound + reach[1], total), len(before), total)

    @property
    def more(self) -> int:
        """From where on no state is known."""
        return min(max(self.end, self.known), self.total)

    @property
    def parts(self) -> list[tuple[int, int]]:
        """What is made now."""
        return [(a, b) for a, b in ((self.begin, self.end), (self.more, self.total)) if a < b]

    def kept(self, known: Floats, axis: int) -> Floats:
        """Of an array of all states before, those that are kept."""
        first, second = self._cut(known, axis)
        return np.concatenate([first, second], axis)

    def merged(self, known: Floats, new: Floats, axis: int) -> Floats:
        """All states, in their order."""
        first, second = self._cut(known, axis)
        made, added = np.split(new, [self.end - self.begin], axis)
        return np.concatenate([first, made, second, added], axis)

    def _cut(self, known: Floats, axis: int) -> tuple[Floats, Floats]:
        at = (slice(None),) * axis
        return known[(*at, slice(0, self.begin))], known[(*at, slice(self.end, self.more))]

    def merged_layers(self, known: Layers, new: Layers) -> Layers:
        return {name: self.merged(known[name], array, 2) for name, array in new.items()}


@dataclass(frozen=True, slots=True)
class Made:
    """The states that a plan makes, and what is known of the others."""

    plan: Plan
    before: Encoded | None
    embedded: Floats
    states: Floats
    layers: Layers

    def finished(self, memory: Layers, sound: int) -> Encoded:
        """The whole window; `memory` is what the decoder makes of the new states."""
        if self.before is None:
            return Encoded(self.embedded, self.layers, memory, sound)
        return Encoded(
            self.embedded,
            self.plan.merged_layers(self.before.layers, self.layers),
            self.plan.merged_layers(self.before.memory, memory),
            sound,
        )


class Encoder:
    """The encoder of one model."""

    def __init__(self, weights: Weights, graphs: Graphs, *, exact: bool = False) -> None:
        """`exact`: in 32-bit floats; else in 8 bits."""
        self._embedding = graphs.session("embedding", lambda: embedding_graph(weights))
        self._layers = graphs.session("encoder", lambda: encoder_graph(weights, exact=exact))
        self.weights = weights
        self._positions = weights.array("encoder/position_encodings/encodings")
        self._names = [one.name for one in self._layers.get_inputs()[1:]]
        heads = Shape.of(weights).heads
        self._nothing = np.zeros((1, heads, 0, self._positions.shape[1] // heads), np.float32)

    def encode(self, mel: Mel, sound: int = 0, before: Encoded | None = None) -> Made:
        """The newest states of a window that holds so many of sound; all, without `before`."""
        total = mel.shape[1] // 2
        plan = Plan.around(before, sound, total, (BEHIND, NEXT))
        embedded = self._embedded(mel, Plan.around(before, sound, total, (EDGE, EDGE)), before)
        places = np.concatenate([np.arange(*part) for part in plan.parts])
        feed = {"x": (embedded[places] + self._positions[places])[None]}
        for name in self._names:
            feed[name] = self._nothing if before is None else plan.kept(before.layers[name], 2)
        states, *made = self._layers.run(None, feed)
        layers = dict(zip(self._names, made, strict=True))
        return Made(plan, before, embedded, states[0], layers)

    def _embedded(self, mel: Mel, plan: Plan, before: Encoded | None) -> Floats:
        """All embedded states, those that the plan makes anew."""
        new = np.concatenate([self._embed(mel, *part) for part in plan.parts])
        return new if before is None else plan.merged(before.embedded, new, 0)

    def _embed(self, mel: Mel, begin: int, end: int) -> Floats:
        """The states from `begin` to `end`: the convolutions see the frames around them, too."""
        first = max(0, begin - REACH)
        frames = np.ascontiguousarray(mel[None, :, 2 * first : 2 * (end + REACH)])
        embedded: Floats = self._embedding.run(None, {"mel": frames})[0][0]
        return embedded[begin - first : end - first]
