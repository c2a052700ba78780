"""Moonshine's encoder in steps: only the newest sound is encoded again when more is heard.

A state is final once so much sound lies behind it, `Pace.ahead`: from then on its keys and values
are kept, and newer states look at those. The norm behind the first convolution is over all sound so
far, and each frame is made once, with what was known of the sound when it came. With a second of
sound ahead none of this needs training where speech is clear, with five seconds nowhere
(`results/cascade.md`); a net that was trained to hear in chunks makes do with less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE, Samples
from dragoman.models.byte_sums import are_exact
from dragoman.models.graphs import Graphs
from dragoman.models.moonshine.ease import eased, murmur, readers
from dragoman.models.moonshine.graph import layers_graph, past_names, stem_graph
from dragoman.models.moonshine.tongue import no_judgement
from dragoman.models.search import FORBIDDEN, Floats
from dragoman.models.whisper.graph import Shape
from dragoman.models.whisper.weights import Weights

STATE = 384  # samples that the encoder makes one state of,
BEHIND = 511  # and that it needs behind the last of them
OPEN = RATE // STATE + 1  # newest states, a second of sound, that are not final
COUNTED_TWICE = 7  # frames of the first convolution that two calls of the stem share
LONG = 30 * RATE // 64  # frames of it after which old ones count for less and less

Layers = dict[str, Floats]  # keys and values by name, `[1, heads, states, head width]`
Labels = NDArray[np.int64]  # the unit that a CTC head hears in each state


@dataclass(frozen=True, slots=True)
class Level:
    """What is known of the sound so far: how loud it comes out of the first convolution."""

    mean: float = 0.0
    square: float = 0.0
    count: int = 0  # frames that this was learnt from, at most `LONG`


@dataclass(frozen=True, slots=True)
class Pace:
    """How an encoder goes through sound, in states."""

    ahead: int = OPEN  # newest ones, which are encoded again when more is heard
    chunk: int = 0  # most that become final at a time, as in training; 0: any number

    def pass_over(self, frames: int) -> int:
        """How many frames are looked at together, of those that are there."""
        return min(frames, self.chunk + self.ahead) if self.chunk else frames


def _none() -> Floats:
    return np.zeros((0, 0), np.float32)


def no_labels(states: Floats | None = None) -> Labels:
    """What a model without a CTC head hears."""
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A window as far as it was encoded."""

    level: Level = Level()
    count: int = 0  # states,
    seen: int = 0  # of which so many have been made
    frames: Floats = field(default_factory=_none)  # [open, width] of the newest states
    past: Layers = field(default_factory=dict)  # keys and values of the others, by layer
    memory: Layers = field(default_factory=dict)  # what the decoder reads of all states
    labels: Labels = field(default_factory=no_labels)  # of all states
    judged: Floats = field(default_factory=no_judgement)  # whether they are English, of all states

    def __len__(self) -> int:
        return self.count

    @property
    def final(self) -> int:
        """States that will not change."""
        return self.count - len(self.frames)

    @property
    def whole(self) -> bool:
        """Whether there is a state of every frame."""
        return self.seen == self.count

    def anew(self) -> Encoded:
        """Nothing of a window yet, of a speaker whose level is known."""
        return type(self)(self.level)


class Encoder:
    """The encoder of one model."""

    def __init__(
        self,
        weights: Weights,
        graphs: Graphs,
        remember: Callable[[Floats], Layers],
        *,
        label: Callable[[Floats], Labels] = no_labels,
        judge: Callable[[Floats], Floats] = no_judgement,
        pace: Pace | None = None,
        exact: bool = False,
    ) -> None:
        """`remember` is what the decoder makes of states, `label` what a CTC head does, `judge`
        tells their language; `exact`: in 32-bit floats, as it is wherever these are faster."""
        exact = exact or not are_exact()
        self._pace = pace or Pace()
        self._remember, self._label, self._judge = remember, label, judge
        self._names = past_names(weights)
        self._angles = weights.array("encoder/angles").astype(np.float64)
        shape = Shape.of(weights)
        self._nothing = np.zeros((1, shape.heads, 0, shape.head_width), np.float32)
        self._stem = graphs.session("stem", lambda: stem_graph(weights))

        def layers() -> bytes:
            return layers_graph(weights if exact else self._eased(weights), exact=exact)

        self._layers = graphs.session("layers", layers, of=exact)

    def encode(self, windows: Sequence[Encoded], sounds: Sequence[Samples]) -> list[Encoded]:
        """Encode the sound behind each window; its first sample belongs to a new state."""
        made = list(windows)
        groups: dict[tuple[int, bool], list[int]] = {}
        for index, (window, sound) in enumerate(zip(windows, sounds, strict=True)):
            new = (len(sound) - BEHIND) // STATE
            if new > 0:
                groups.setdefault((new, window.count > 0), []).append(index)
        for (new, joined), members in groups.items():
            length, skip = new * STATE + BEHIND, COUNTED_TWICE if joined else 0
            batch = np.stack([sounds[index][:length] for index in members])
            heard = self._stemmed([windows[index] for index in members], batch, skip)
            for index, one in zip(members, heard, strict=True):
                made[index] = one
        changed = [index for members in groups.values() for index in members]
        while changed:
            looked = self._look([made[index] for index in changed])
            for index, one in zip(changed, looked, strict=True):
                made[index] = one
            changed = [index for index in changed if not made[index].whole]
        return made

    def _stemmed(self, windows: Sequence[Encoded], sounds: Floats, skip: int) -> list[Encoded]:
        """The windows with frames of more sound, of which there are no states yet."""
        new = (sounds.shape[1] - 127) // 64 + 1 - skip
        levels = [window.level for window in windows]
        feed: dict[str, Any] = {
            "samples": sounds,
            "mean": _column([level.mean for level in levels]),
            "square": _column([level.square for level in levels]),
            "share": _column([new / (level.count + new) for level in levels]),
            "skip": np.array([skip]),
        }
        frames, means, squares = self._stem.run(None, feed)
        made = []
        for window, more, mean, square in zip(windows, frames, means, squares, strict=True):
            seen = min(window.level.count + new, LONG)
            level = Level(float(mean.item()), float(square.item()), seen)
            joined = np.concatenate([window.frames, more]) if window.count else more
            count = window.count + len(more)
            made.append(replace(window, level=level, frames=joined, count=count))
        return made

    def _eased(self, weights: Weights) -> Weights:
        """The same net, which loses less in 8 bits: told by what its norms put out."""
        norms = list(readers(weights))
        graph = layers_graph(weights, exact=True, more=norms)
        window = self._stemmed([Encoded()], murmur()[None], 0)[0]
        feed = self._feed([window], [len(window.frames)])
        put_out = Graphs(None, 1).session("norms", lambda: graph).run(norms, feed)
        return eased(weights, dict(zip(norms, put_out, strict=True)))

    def _look(self, windows: Sequence[Encoded]) -> list[Encoded]:
        """The windows with states of more of their frames; those that are older become final."""
        opens = [self._pace.pass_over(len(one.frames)) for one in windows]
        states, *outputs = self._layers.run(None, self._feed(windows, opens))
        made = []
        for index, one in enumerate(windows):
            layers = {n: a[index : index + 1] for n, a in zip(self._names, outputs, strict=True)}
            made.append(self._looked(one, states[index, : opens[index]], layers))
        return made

    def _feed(self, windows: Sequence[Encoded], opens: Sequence[int]) -> dict[str, Any]:
        """What the layers are given of so many of each window's open frames."""
        finals = [one.final for one in windows]
        kept, longest = max(finals), max(opens)
        feed: dict[str, Any] = {
            "x": np.stack(
                [filled(w.frames[:n], longest, 0) for w, n in zip(windows, opens, strict=True)]
            ),
            "mask": mask_beyond(finals, opens),
            **self._turns(finals, longest),
        }
        for name in self._names:
            past = (one.past.get(name, self._nothing) for one in windows)
            feed[name] = np.concatenate([filled(array, kept, 2) for array in past])
        return feed

    def _looked(self, window: Encoded, states: Floats, layers: Layers) -> Encoded:
        """A window with states of its first open frames."""
        ripe = max(0, len(states) - self._pace.ahead)
        return replace(
            window,
            seen=window.final + len(states),
            frames=window.frames[ripe:].copy(),
            past=_joined(window.past, _first(layers, ripe)),
            memory=_joined(_first(window.memory, window.final), self._remember(states)),
            labels=np.concatenate([window.labels[: window.final], self._label(states)]),
            judged=np.concatenate([window.judged[: window.final], self._judge(states)]),
        )

    def _turns(self, places: Sequence[int], count: int) -> Layers:
        """By how much the places of a batch turn queries and keys."""
        at = np.array(places)[:, None] + np.arange(count)
        turns = at[..., None] * self._angles
        return {n: f(turns).astype(np.float32) for n, f in (("cosine", np.cos), ("sine", np.sin))}


def _first(layers: Layers, states: int) -> Layers:
    return {name: array[:, :, :states] for name, array in layers.items()}


def _joined(before: Layers, after: Layers) -> Layers:
    """Arrays of a window's own: for the sake of a part, all that a batch made would be kept."""
    if not before:
        return {name: array.copy() for name, array in after.items()}
    return {name: np.concatenate([before[name], array], axis=2) for name, array in after.items()}


def filled(array: Floats, length: int, axis: int) -> Floats:
    """An array with zeros behind it, up to a length."""
    missing = length - array.shape[axis]
    if not missing:
        return array
    return np.pad(array, [(0, missing if at == axis else 0) for at in range(array.ndim)])


def mask_beyond(finals: Sequence[int], opens: Sequence[int]) -> Floats:
    """What must not be looked at: that which fills shorter windows up."""

    def beyond(lengths: Sequence[int]) -> Any:
        return np.arange(max(lengths)) >= np.array(lengths)[:, None]

    hidden = np.concatenate([beyond(finals), beyond(opens)], axis=1)
    return np.where(hidden, FORBIDDEN, np.float32(0))[:, None, None, :]


def _column(values: Sequence[float]) -> Floats:
    return np.array(values, np.float32)[:, None, None]
