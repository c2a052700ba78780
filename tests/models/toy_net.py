"""A toy in place of an exported net: it hears which of twenty words is spoken, one a second.

A word is 0.8 s of a constant level, then comes 0.2 s of silence. The toy writes the words of its
window in order and looks at the middle of a word when it writes it; every fifth word ends a
sentence. It complains when what was said is not what it hears: then sound or text was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.models.exported.config import Chunks, Languages
from dragoman.models.exported.model import ExportedModel
from dragoman.models.exported.net import BOS, EOS, Encoding, Stepped
from dragoman.models.exported.pieces import Pieces

WORDS = 20
FIRST = 4  # the token of the first word
HEARD = 10  # states of a word that are enough to tell it, of twenty
LIKELY, UNLIKELY = np.log(0.9), np.log(0.001)
KINDS = ("whole", "chunks", "keeps-past", "monotonic", "transducer")


def talk(seconds: int, seed: int = 7) -> list[int]:
    """Words without end: no word follows itself."""
    random = np.random.default_rng(seed)
    words = [0]
    while len(words) < seconds:
        word = int(random.integers(WORDS))
        if word != words[-1]:
            words.append(word)
    return words


def speech(words: Sequence[int]) -> np.ndarray:
    """The sound of words; a word below 0 is a second of silence."""
    second = np.r_[np.ones(RATE * 8 // 10), np.zeros(RATE * 2 // 10)]
    return np.concatenate([second * (word + 1) / 100 for word in words]).astype(np.float32)


def spelled(words: Sequence[int]) -> str:
    return "".join(f" w{word}{'.' if word % 5 == 4 else ''}" for word in words)


class ToyFeatures:
    """A frame every 10 ms: the level of the sound."""

    def __init__(self, bands: int) -> None:
        self.frames = np.zeros((0, bands), np.float32)
        self.start = self.samples = 0
        self._left = np.zeros(0, np.float32)

    @property
    def end(self) -> int:
        return self.start + len(self.frames)

    def hear(self, samples, ended=False) -> None:
        self.samples += len(samples)
        sound = np.concatenate([self._left, samples])
        count = len(sound) // 160
        self.frames = np.concatenate([self.frames, sound[: count * 160 : 160, None]])
        self._left = sound[count * 160 :]

    def forget(self, until) -> None:
        dropped = max(0, min(until, self.end) - self.start)
        self.frames = self.frames[dropped:]
        self.start += dropped


class ToyNet:
    """Memory is the word that each state belongs to; the cache is the row of tokens read."""

    blank = 0

    def __init__(self, kind: str) -> None:
        self.config = SimpleNamespace(
            bands=1,
            chunks=Chunks(4, 2, ()) if kind in ("chunks", "monotonic", "transducer") else None,
            keeps_past=kind in ("keeps-past", "monotonic", "transducer"),
            decides=kind if kind in ("monotonic", "transducer") else "no",
            decision=8,
            attention_layer=-1 if kind == "transducer" else 0,
            memory_time=1,
            languages=Languages("en", "de"),
            state_ms=40.0,
            ctc=False,
            boundaries=True,
        )
        self.kind = kind
        self.encoded: list[int] = []  # the states of each window that was encoded
        self.batches: list[int] = []  # of the decoder

    def begin(self, batch):
        return (np.zeros((batch, 0), np.int64),)

    def begin_stream(self, batch):
        return (np.zeros((batch, 1), np.float32),)

    def encode(self, features, lengths) -> Encoding:
        states = -(-lengths // 4)
        memory = np.rint(features[:, ::4, 0] * 100).astype(np.int64) - 1
        self.encoded += states.tolist()
        return Encoding(states, (memory,), boundaries=self._ends(memory))

    def hear(self, features, frames, stream) -> tuple[Encoding, tuple]:
        assert stream[0].shape[1] == 1
        states = np.minimum(self.config.chunks.chunk, -(-frames // 4))
        memory = np.rint(features[:, : 4 * self.config.chunks.chunk : 4, 0] * 100).astype(int) - 1
        return Encoding(states, (memory,), boundaries=self._ends(memory)), (stream[0] + 1,)

    def _ends(self, memory) -> np.ndarray:
        """The probability that a word ends: where it is silent."""
        return (memory < 0).astype(np.float32)

    def join(self, before, after):
        return after if before is None else (np.concatenate([before[0], after[0]], axis=1),)

    def cut(self, memory, states):
        return tuple(array[:, states] for array in memory)

    def step(self, tokens, memory, lengths, cache, final=None) -> Stepped:
        self.batches.append(len(tokens))
        rows = np.concatenate([cache[0], tokens], axis=1)
        count, width = tokens.shape
        log_probs = np.full((count, width, FIRST + WORDS), UNLIKELY, np.float32)
        attention = np.zeros((count, 1, width, memory[0].shape[1]), np.float32)
        write = np.ones((count, width), bool)
        for i, row in enumerate(rows):
            states = memory[0][i, : lengths[i]]
            heard = words_in(states)
            for u in range(width):
                said = row[1 : len(row) - width + u + 1]
                if said.tolist() != [word + FIRST for word, _ in heard[: len(said)]]:
                    # A beam may try what was not spoken, but nobody may have said it.
                    assert cache[0].shape[1], "what was said is not what is heard"
                    continue
                more = len(said) < len(heard)
                word, middle = heard[len(said)] if more else (0, lengths[i] - 1)
                log_probs[i, u, word + FIRST if more else EOS] = LIKELY
                attention[i, 0, u, middle] = 1.0
                write[i, u] = more or final is None or bool(final[i])
        decides = self.config.decides == "monotonic"
        return Stepped(log_probs, attention, (rows,), write if decides else None)


def words_in(states: np.ndarray) -> list[tuple[int, int]]:
    """The words that last long enough, each with the state in its middle."""
    edges = np.flatnonzero(np.diff(states)) + 1
    begins, ends = np.r_[0, edges], np.r_[edges, len(states)]
    spans = zip(begins.tolist(), ends.tolist(), strict=True)
    return [
        (int(states[begin]), (begin + end) // 2)
        for begin, end in spans
        if states[begin] >= 0 and end - begin >= HEARD
    ]


def pieces() -> Pieces:
    names = [f"w{word}{'.' if word % 5 == 4 else ''}▁" for word in range(WORDS)]
    return Pieces(("<pad>", "<s>", "</s>", "<unk>", *names), "suffix")


def toy_model(kind: str, monkeypatch, beams: int = 5) -> ExportedModel:
    """`monkeypatch` puts the toy's features in place of Kaldi's."""
    monkeypatch.setattr("dragoman.models.exported.model.FeatureStream", ToyFeatures)
    net = ToyNet(kind)
    assert (BOS, EOS) == (1, 2)
    return ExportedModel(kind, net, pieces(), None, beams)
