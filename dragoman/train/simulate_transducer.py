"""Transducers (CAAT), all clips of a set side by side.

What `dragoman sweep` finds clip by clip in the loop of live use with `follow`. The search
of a group is the loop's own, and goes one token further in all clips at a time. What the encoder
makes of a chunk does not depend on what comes after, so every clip is encoded once. Nothing told of
speech and silence, no work counted in the lag; a test holds it to the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from dragoman.models.drafting import Ending
from dragoman.models.exported.caat_search import Hypothesis, Scores, Search
from dragoman.models.exported.config import Chunks
from dragoman.models.exported.model import KEPT_PAST
from dragoman.models.exported.net import PAD
from dragoman.models.exported.pieces import Pieces
from dragoman.models.exported.stream import Decoded
from dragoman.models.exported.transducer import read_on, sure
from dragoman.models.window import Window
from dragoman.train.data.corpus import Ragged
from dragoman.train.nets.base import Encoded
from dragoman.train.nets.caat import Caat
from dragoman.train.simulate import Clips, Heard, SideBySide
from dragoman.train.simulate_past import say_all

CLIPS, TEXTS = 250, 1000  # encoded, and scored, at a time


@dataclass
class Talk:
    """One clip: what was said of it, and how far it was read."""

    number: int
    window: Window
    decoded: Decoded = field(default_factory=Decoded)


@dataclass
class Open:
    """A search that waits for the scores of its texts."""

    talk: Talk
    search: Search[None]
    wanted: Sequence[Hypothesis]

    def go_on(self, scores: Scores) -> bool:
        """Whether it asks for more."""
        try:
            self.wanted = self.search.send(scores)
        except StopIteration:
            return False
        return True


class TransducerSimulation(SideBySide):
    """All clips of a set as a transducer decides itself."""

    net: Caat

    def __init__(self, net: Caat, units: Pieces, clips: Clips, step_ms: float):
        super().__init__(net, units, clips, step_ms)
        self.chunks = Chunks(net.config.chunk, net.config.right, ())
        self.talks = [Talk(n, Window(KEPT_PAST, units)) for n in range(len(clips.data))]
        self.encoded = self._encode_all()

    @torch.no_grad()
    def _encode_all(self) -> Encoded:
        pairs = zip(self.clips.features.split(CLIPS), self.clips.frames.split(CLIPS), strict=True)
        parts = [self.net.encode(features, frames) for features, frames in pairs]
        states, lengths = zip(*((part.states, part.lengths) for part in parts), strict=True)
        return Encoded(torch.cat(states), torch.cat(lengths))

    def hear(self, heard: Heard) -> None:
        heard = heard.only(heard.enough)
        states = np.where(heard.last, -(-heard.frames // 4), self._states(heard.frames))
        heard, states = heard.only(states > 0), states[states > 0]
        talks = [self.talks[number] for number in heard.here.tolist()]
        rows = list(zip(talks, states.tolist(), heard.last.tolist(), strict=True))
        self._read(rows)
        for talk, _, final in rows:
            found = sure(talk.decoded, len(talk.window.said), final)
            ending = Ending(final, late_stop=False)
            say_all(talk.window, found, ending, self.traces[talk.number], heard.chunk)

    def _states(self, frames: np.ndarray) -> np.ndarray:
        """How many states the encoder has made: those of whole chunks that it could look beyond."""
        whole = (frames - self.chunks.window) // self.chunks.advance + 1
        return self.chunks.chunk * np.maximum(whole, 0)

    def _read(self, rows: Sequence[tuple[Talk, int, bool]]) -> None:
        """Search what has become complete of each clip."""
        going = []
        for talk, states, final in rows:
            search = read_on(talk.decoded, states, self.net.config.decision, final)
            wanted = next(search, None)
            if wanted is not None:
                going.append(Open(talk, search, wanted))
        while going:
            scores = self._scores(going)
            pairs = zip(going, scores, strict=True)
            going = [one for one, rows_of_it in pairs if one.go_on(rows_of_it)]

    def _scores(self, going: Sequence[Open]) -> list[Scores]:
        """What may follow each text of each search. No text has a state: all of it is read again,
        which costs a device less than to keep what it has made of it."""
        texts = [(one.talk, text.tokens) for one in going for text in one.wanted]
        parts = [self._follow(texts[n : n + TEXTS]) for n in range(0, len(texts), TEXTS)]
        counts = [len(one.wanted) for one in going]
        split = np.split(np.concatenate(parts), np.cumsum(counts)[:-1])
        return [(rows, [None] * len(rows)) for rows in split]

    def _follow(self, texts: Sequence[tuple[Talk, tuple[int, ...]]]) -> np.ndarray:
        device = self.encoded.states.device
        written = [len(tokens) for _, tokens in texts]
        rows = Ragged.of([list(tokens) for _, tokens in texts])
        tokens = torch.from_numpy(rows.padded(max(written), PAD)).to(device)
        numbers = torch.tensor([talk.number for talk, _ in texts], device=device)
        seen = [talk.decoded.seen for talk, _ in texts]
        states = self.encoded.states[numbers, : max(seen)]
        heard = Encoded(states, torch.tensor(seen, device=device))
        logits = self.net.following(tokens, torch.tensor(written, device=device), heard)
        log_probs = logits.float().log_softmax(-1)
        log_probs[:, PAD] = -torch.inf
        return log_probs.cpu().numpy()
