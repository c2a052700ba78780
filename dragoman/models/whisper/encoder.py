"""What the encoder makes of a window, and of the same window when a little more has been heard.

Every state sees the whole window, so strictly all of them change with each new sound. Those that
are not at its end hardly do: they are kept, with their keys and values in every layer, and only the
newest are made again. Now and then the window is renewed: all states of its last seconds are made
again. What is kept in between is always of such a look, so that nothing grows old that is near.

Behind the sound the net wants silence. Its states are nearly alike, so only some are made, and each
counts as often as the states that it stands for: the logarithm of their number is added to what a
query scores with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.models.graphs import Graphs
from dragoman.models.search import Floats
from dragoman.models.whisper.encoder_graph import embedding_graph, encoder_graph
from dragoman.models.whisper.graph import Shape
from dragoman.models.whisper.mel import Mel
from dragoman.models.whisper.weights import Weights

BEHIND = 50  # states at the end of the sound that are made again when it goes on: 1 s;
FAR = 150  # when the window is renewed: 3 s
NEAR, LAST = 16, 4  # states of silence next to the sound, and at the end, that are all made;
EVERY = 16  # of those between, one in so many
REACH = 2  # states to each side that the convolutions look at, and a little more
EDGE = 4  # states at the edge of the sound whose frames change when it goes on

Layers = dict[str, Floats]  # keys and values by name, `[1, heads, states, head width]`
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A window: its states of sound, and behind them those of silence."""

    embedded: Floats  # [states of sound, width], by the convolutions
    layers: Layers  # the encoder's own, of sound
    memory: Layers  # what the decoder makes of all states
    weight: Floats  # of every state: the logarithm of how many it stands for

    @property
    def sound(self) -> int:
        """States of sound."""
        return len(self.embedded)


@dataclass(frozen=True, slots=True)
class Made:
    """States of a window; those before `begin` are kept."""

    begin: int
    sound: int
    embedded: Floats  # of all sound
    states: Floats
    layers: Layers
    weight: Floats  # of all states

    def finished(self, memory: Layers, before: Encoded | None) -> Encoded:
        """The whole window; `memory` is what the decoder makes of the new states."""
        layers = {
            name: array[:, :, : self.sound - self.begin] for name, array in self.layers.items()
        }
        if before is not None:
            layers = _joined(before.layers, layers, self.begin)
            memory = _joined(before.memory, memory, self.begin)
        return Encoded(self.embedded, layers, memory, self.weight)


class Encoder:
    """The encoder of one model."""

    def __init__(self, weights: Weights, graphs: Graphs, *, exact: bool = False) -> None:
        """`exact`: in 32-bit floats; else in 8 bits."""
        self._embedding = graphs.session("embedding", lambda: embedding_graph(weights))
        self._layers = graphs.session(
            "encoder", lambda: encoder_graph(weights, exact=exact), of=exact
        )
        self.weights = weights
        self._positions = weights.array("encoder/position_encodings/encodings")
        names = (one.name for one in self._layers.get_inputs())
        self._names = [name for name in names if name not in ("x", "weight")]
        heads = Shape.of(weights).heads
        self._nothing = np.zeros((1, heads, 0, self._positions.shape[1] // heads), np.float32)

    def encode(
        self,
        mel: Mel,
        sound: int | None = None,
        before: Encoded | None = None,
        *,
        renew: bool = False,
        plain: bool = False,
    ) -> Made:
        """States of a window that holds so many of sound, the others being of silence; without
        `sound`, all are of sound.

        With `before`, the newest; `renew`: those of its last seconds. `plain`: all of silence.
        """
        total = mel.shape[1] // 2
        sound = total if sound is None else sound
        again = FAR if renew else BEHIND
        begin = max(0, min(before.sound, sound) - again) if before else 0
        places, counts = silent(sound, total, 1 if plain else EVERY)
        embedded, silence = self._embedded(mel, sound, places, before)
        new = np.concatenate([embedded[begin:], silence])
        new += self._positions[np.concatenate([np.arange(begin, sound), places])]
        weight = np.concatenate([np.zeros(sound, np.float32), np.log(counts)])
        feed = {"x": new[None], "weight": weight[None, None, None]}
        for name in self._names:
            feed[name] = before.layers[name][:, :, :begin] if before else self._nothing
        states, *layers = self._layers.run(None, feed)
        made = dict(zip(self._names, layers, strict=True))
        return Made(begin, sound, embedded, states[0], made, weight)

    def _embedded(
        self, mel: Mel, sound: int, places: Places, before: Encoded | None
    ) -> tuple[Floats, Floats]:
        """All of the sound, embedded, and the places of silence. Silence is alike, but for what is
        next to the sound and at the end of the window."""
        total = mel.shape[1] // 2
        begin = max(0, min(before.sound, sound) - EDGE) if before else 0
        near = self._embed(mel, begin, min(sound + NEAR, total))
        known = before.embedded[:begin] if before else near[:0]
        embedded = np.concatenate([known, near[: sound - begin]])
        if len(places) == 0:
            return embedded, near[:0]
        last = self._embed(mel, max(total - LAST, sound), total)
        silence = near[np.minimum(places - begin, len(near) - 1)]
        silence[-len(last) :] = last
        return embedded, silence

    def _embed(self, mel: Mel, begin: int, end: int) -> Floats:
        """The states from `begin` to `end`: the convolutions see the frames around them, too."""
        first = max(0, begin - REACH)
        frames = np.ascontiguousarray(mel[None, :, 2 * first : 2 * (end + REACH)])
        embedded: Floats = self._embedding.run(None, {"mel": frames})[0][0]
        return embedded[begin - first : end - first]


def silent(sound: int, total: int, every: int) -> tuple[Places, Floats]:
    """The places of the states of silence that are made, and how many each stands for."""
    first, last = min(sound + NEAR, total), max(total - LAST, min(sound + NEAR, total))
    begins = np.arange(first, last, every)
    ends = np.minimum(begins + every, last)
    near, end = np.arange(sound, first), np.arange(last, total)
    places = np.concatenate([near, (begins + ends - 1) // 2, end])
    counts = [np.ones(len(near)), ends - begins, np.ones(len(end))]
    return places, np.concatenate(counts).astype(np.float32)


def _joined(known: Layers, new: Layers, begin: int) -> Layers:
    """The first states as they were known, then the new ones."""
    return {
        name: np.concatenate([known[name][:, :, :begin], array], axis=2)
        for name, array in new.items()
    }
