"""Wait-k with a trained net, all clips of a set side by side on the device.

What `dragoman sweep` finds clip by clip in the loop of live use, in seconds for a thousand clips:
greedy search, nothing told of speech and silence, no work counted in the lag. Papers that compare
many nets at many latencies are tried with it; a test holds it to the loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from dragoman.audio.chunk import RATE
from dragoman.errors import DragomanError
from dragoman.models.exported.encoder import FEWEST_FRAMES
from dragoman.models.exported.model import SPARE_TOKENS
from dragoman.models.exported.net import BOS, EOS, PAD
from dragoman.models.exported.pieces import Pieces
from dragoman.models.guard import cut_loop
from dragoman.models.life import SHORTEST_MS
from dragoman.models.words import without_stop
from dragoman.text.units import word_ends
from dragoman.trace import Hearing, Saying, Trace
from dragoman.train.data.corpus import Ragged, TrainingSet
from dragoman.train.data.fbank import SHIFT, WINDOW
from dragoman.train.losses.waitk import ctc_marks
from dragoman.train.nets.base import Encoded, Net
from dragoman.train.nets.boundaries import fires
from dragoman.train.tasks.base import Task


@dataclass(frozen=True)
class Waiting:
    """One way to wait: k words behind (0: to the end), counted so, in chunks of `step_ms`."""

    k: int
    words: Literal["fixed", "ctc", "learned", "ends"] = "fixed"
    word_ms: float = 280.0
    step_ms: float = 280.0


@dataclass(frozen=True)
class Clips:
    """A set of clips as features on the device."""

    data: TrainingSet
    features: Tensor  # [N, T, F]
    frames: Tensor  # [N]

    @property
    def samples(self) -> np.ndarray:
        return self.data.samples

    @classmethod
    @torch.no_grad()
    def of(cls, task: Task, data: TrainingSet, device: torch.device) -> Clips:
        sound = torch.zeros(len(data), int(data.samples.max()), dtype=torch.int16)
        for number in range(len(data)):
            one = torch.from_numpy(np.array(data.sound(number)))
            sound[number, : len(one)] = one
        samples = torch.from_numpy(data.samples).to(device)
        assert task.front is not None  # what is simulated hears
        parts = [
            task.front.features(some.to(device).float(), several)
            for some, several in zip(sound.split(250), samples.split(250), strict=True)
        ]
        features, frames = zip(*parts, strict=True)
        return cls(data, torch.cat(features), torch.cat(frames))


@dataclass(frozen=True)
class Heard:
    """What was heard after a chunk: clips that still had sound, and how much of each by now."""

    chunk: int
    here: np.ndarray  # numbers of the clips
    ms: np.ndarray
    frames: np.ndarray
    last: np.ndarray  # whether that was all of it

    def only(self, chosen: np.ndarray) -> Heard:
        parts = (self.here, self.ms, self.frames, self.last)
        return Heard(self.chunk, *(part[chosen] for part in parts))

    @property
    def enough(self) -> np.ndarray:
        """Where it is worth a look."""
        return (self.frames >= FEWEST_FRAMES) & (self.ms >= SHORTEST_MS)


class SideBySide(ABC):
    """All clips of a set, chunk after chunk; what is done after each is left to `hear`."""

    def __init__(self, net: Net, units: Pieces, clips: Clips, step_ms: float):
        self.net, self.units, self.clips, self.step_ms = net, units, clips, step_ms
        references = clips.data.target_texts()
        self.traces = [Trace(n, clips.data.item(n).id, text) for n, text in enumerate(references)]

    @torch.no_grad()
    def run(self) -> list[Trace]:
        step = int(self.step_ms * RATE / 1000)
        for chunk in range(-(-int(self.clips.samples.max()) // step)):
            self.hear(self._heard(chunk, step))
        return self.traces

    @abstractmethod
    def hear(self, heard: Heard) -> None:
        """Say what may be said after a chunk."""

    def _heard(self, chunk: int, step: int) -> Heard:
        samples = self.clips.samples
        here = np.flatnonzero(samples > chunk * step)
        amounts = np.minimum(samples[here], (chunk + 1) * step)
        ms, last = amounts * 1000.0 / RATE, amounts == samples[here]
        for number, moment in zip(here.tolist(), ms.tolist(), strict=True):
            self.traces[number].heard(Hearing(moment, moment, moment, moment))
        frames = np.maximum(0, (amounts - WINDOW) // SHIFT + 1)
        frames = np.where(last, self.clips.frames[here].cpu().numpy(), frames)
        return Heard(chunk, here, ms, frames, last)

    def encode(self, heard: Heard) -> Encoded:
        device = self.clips.features.device
        rows = torch.from_numpy(heard.here).to(device)
        lengths = torch.from_numpy(heard.frames).to(device)
        return self.net.encode(self.clips.features[rows, : int(heard.frames.max())], lengths)


class Simulation(SideBySide):
    """All clips of a set under one way to wait."""

    def __init__(
        self, net: Net, ends_source: Tensor | None, units: Pieces, clips: Clips, way: Waiting
    ):
        super().__init__(net, units, clips, way.step_ms)
        self.way = way
        self.ends_source = ends_source  # [V + 1], units that end a source word
        if units.spaced and units.marking != "suffix":
            raise DragomanError(
                "Words are counted by units that end them: vocabulary.target.suffix."
            )
        ends = word_ends(units.names, units.marking) if units.spaced else [True] * len(units.names)
        self.ends_target = torch.tensor(ends, device=clips.features.device)
        if way.words == "ctc" and (ends_source is None or getattr(net, "ctc", None) is None):
            raise DragomanError("Words counted by CTC need a net with a CTC head.")
        if way.words == "learned" and not getattr(net.config, "boundaries", False):
            raise DragomanError("Learned word ends need a net with a head for them.")
        self.by_head = way.words in ("ctc", "learned")
        count = len(clips.data)
        self.said: list[list[int]] = [[] for _ in range(count)]
        self.said_words = np.zeros(count, np.int64)
        self.heard_words = np.zeros(count, np.int64)

    def hear(self, heard: Heard) -> None:
        asked = heard.enough
        if not self.by_head:
            self._count(heard.here, heard.ms)
            asked &= (self._due(heard.here) > 0) | heard.last
        heard = heard.only(asked)
        if not len(heard.here):
            return
        encoded = self.encode(heard)
        if self.by_head:
            self._count_by_head(heard.here, encoded)
            asked = (self._due(heard.here) > 0) | heard.last
            rows = torch.from_numpy(np.flatnonzero(asked)).to(encoded.states.device)
            heard = heard.only(asked)
            encoded = Encoded(encoded.states[rows], encoded.lengths[rows])
        if len(heard.here):
            self._speak(heard, encoded)

    def _due(self, here: np.ndarray) -> np.ndarray:
        """How many words each clip may have said more."""
        if not self.way.k:
            return np.zeros(len(here), np.int64)
        return self.heard_words[here] - self.said_words[here] - self.way.k + 1

    def _count(self, here: np.ndarray, heard_ms: np.ndarray) -> None:
        if self.way.words == "fixed":
            counts = (heard_ms / self.way.word_ms + 1e-9).astype(np.int64)
        else:
            ends = self.clips.data.word_ends
            pairs = zip(here.tolist(), heard_ms.tolist(), strict=True)
            counts = np.array([np.searchsorted(ends[n], ms + 1e-6, "right") for n, ms in pairs])
        self.heard_words[here] = np.maximum(self.heard_words[here], counts)

    def _count_by_head(self, here: np.ndarray, encoded: Encoded) -> None:
        marks = self._ctc_marks(encoded) if self.way.words == "ctc" else self._fired(encoded)
        self.heard_words[here] = np.maximum(self.heard_words[here], marks.sum(1).cpu().numpy())

    def _ctc_marks(self, encoded: Encoded) -> Tensor:
        assert encoded.ctc_logits is not None  # the net was chosen for its CTC head
        assert encoded.ctc_lengths is not None
        assert self.ends_source is not None
        return ctc_marks(encoded.ctc_logits.argmax(-1), encoded.ctc_lengths, self.ends_source)

    def _fired(self, encoded: Encoded) -> Tensor:
        assert encoded.boundary_logits is not None  # the net was chosen for its head
        return fires(encoded.boundary_logits) & encoded.valid

    def _speak(self, heard: Heard, encoded: Encoded) -> None:
        due = np.where(heard.last, 10**6, self._due(heard.here))
        numbers = heard.here.tolist()
        found = self._search([self.said[n] for n in numbers], due, encoded)
        for number, final, may, new in zip(numbers, heard.last, due, found, strict=True):
            self._commit(heard.chunk, number, bool(final), int(may), new)

    def _search(self, said: Sequence[list[int]], due: np.ndarray, encoded: Encoded) -> list[Any]:
        """What follows greedily: until so many words are whole, or the text ends."""
        device, count = encoded.states.device, len(said)
        known = torch.tensor([1 + len(one) for one in said], device=device)
        most = known - 1 + (SPARE_TOKENS + encoded.lengths - (known - 1)).clamp(min=0)
        width = int(most.max()) + 1
        rows = Ragged.of([[BOS, *one] for one in said])
        tokens = torch.from_numpy(rows.padded(width + 1, PAD)).to(device)
        wanted = torch.from_numpy(due).to(device)
        size, words = known.clone(), torch.zeros_like(known)
        going = torch.arange(count, device=device)[size - 1 < most]
        while len(going):
            longest = int(size[going].max())
            part = Encoded(encoded.states[going], encoded.lengths[going])
            logits = self.net.decode(tokens[going, :longest], part)
            row = logits[torch.arange(len(going), device=device), size[going] - 1].float()
            row[:, [PAD, BOS]] = -torch.inf
            new = row.argmax(-1)
            tokens[going, size[going]] = new
            size[going] += 1
            words[going] += self.ends_target[new]
            over = (new == EOS) | (words[going] >= wanted[going]) | (size[going] - 1 >= most[going])
            going = going[~over]
        spans = zip(tokens.tolist(), known.tolist(), size.tolist(), strict=True)
        return [row[begin:end] for row, begin, end in spans]

    def _commit(self, chunk: int, number: int, final: bool, due: int, new: list[int]) -> None:
        ended = bool(new) and new[-1] == EOS
        new = new[:-1] if ended else new
        keep = cut_loop(self.said[number], new)
        ended, new = ended and keep == len(new), new[:keep]
        if ended and not final:  # the sentence may go on: its full stop waits
            new = new[: without_stop(self.units, new)]
        grouped = self.units.words(new, ended=ended or final)
        words, count = grouped.words[:due], len(new)
        if not final:
            count = grouped.ends[len(words) - 1] if words else 0
        elif grouped.tail:
            words += (grouped.tail,)
        self.said[number] += new[:count]
        self.said_words[number] += len(words)
        for word in words:
            self.traces[number].said(Saying(word, chunk))
