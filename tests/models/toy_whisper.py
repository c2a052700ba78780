"""A toy in place of Whisper's network: it hears which of twenty tones sounds, a word for each.

A word is a tone of one second. The toy writes the words of its window in order, looks at the
middle of a tone when it writes its word, and ends with a full stop, as Whisper does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.audio.vad import WINDOW
from dragoman.models.search import Found, Prompt
from dragoman.models.whisper.mel import LogMel
from dragoman.models.whisper.tokens import Vocabulary

WORDS = [f"Ġw{index}" for index in range(20)]
STOP = 20
NAMES = (
    *WORDS,
    ".",
    *("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|ja|>", "<|translate|>"),
    *("<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"),
)
IDS = {name: index for index, name in enumerate(NAMES)}
SHORTEST_TONE = 60  # mel frames


def vocabulary() -> Vocabulary:
    return Vocabulary(
        NAMES,
        {code: IDS[f"<|{code}|>"] for code in ("en", "de", "ja")},
        start=IDS["<|startoftranscript|>"],
        end=IDS["<|endoftext|>"],
        translate=IDS["<|translate|>"],
        transcribe=IDS["<|transcribe|>"],
        previous=IDS["<|startofprev|>"],
        no_speech=IDS["<|nospeech|>"],
        no_times=IDS["<|notimestamps|>"],
    )


def tones(words: Sequence[int]) -> np.ndarray:
    """The sound of words; a word below 0 is a second of silence."""
    time = np.arange(RATE) / RATE
    parts = []
    for word in words:
        tone = np.sin(2 * np.pi * (300 + 150 * word) * time) * 0.3
        parts.append(tone if word >= 0 else np.zeros(RATE))
    return np.concatenate(parts).astype(np.float32)


class ToyEngine:
    """Hears tones; keeps a diary of what it was asked."""

    bands = 80
    copies = False
    stop_look = 0  # the state that a full stop looks at
    device = "cpu"

    def __init__(self) -> None:
        self.windows: list[int] = []  # the length of each window that was encoded
        self.batches: list[int] = []
        self.prompts: list[tuple[Prompt, int]] = []

    def new_mel(self):
        return LogMel(self.bands)

    def encode(self, views):
        self.batches.append(len(views))
        self.windows += [view.mel.shape[1] for view in views]
        return [view.mel[:, ::2].T.copy() for view in views]

    def languages(self, states):
        return [{"en": 0.1, "de": 0.8, "ja": 0.1} for _ in states]

    def speak(self, states, prompts, beams):
        self.prompts += [(prompt, beams) for prompt in prompts]
        return [self._speak(s, p) for s, p in zip(states, prompts, strict=True)]

    def _speak(self, states: np.ndarray, prompt: Prompt) -> Found:
        words = heard(states)
        said = [token for token in prompt.said if token != STOP]
        assert said == [word for word, _ in words[: len(said)]], (
            "what was said is not in the window"
        )
        tokens, looks = [], []
        for number, (word, middle) in enumerate(words):
            if number >= len(said):
                tokens.append(word)
                looks.append(spot(len(states), middle))
            if number >= len(said) and word % 5 == 4:
                tokens.append(STOP)
                looks.append(spot(len(states), self.stop_look))
        if words and [*prompt.said, *tokens][-1] != STOP:
            tokens.append(STOP)
            looks.append(spot(len(states), self.stop_look))
        ended = len(tokens) <= prompt.most
        tokens = tokens[: prompt.most]
        return Found(
            tuple(tokens), (-0.1,) * len(tokens), tuple(looks[: len(tokens)]), ended, silence=0.01
        )


def heard(states: np.ndarray) -> list[tuple[int, int]]:
    """The tones in a window that last long enough, each with the state in its middle."""
    loud = states.max(axis=1) > states.max() - 0.5
    labels = np.where(loud, nearest_word()[states.argmax(axis=1)], -1)
    found: list[tuple[int, int]] = []
    begin = 0
    for index in range(1, len(labels) + 1):
        if index == len(labels) or labels[index] != labels[begin]:
            if labels[begin] >= 0 and index - begin >= SHORTEST_TONE // 2:
                found.append((int(labels[begin]), (begin + index) // 2))
            begin = index
    return found


@cache
def nearest_word() -> np.ndarray:
    """For every mel band, the word whose tone is nearest."""
    loudest = []
    for word in range(len(WORDS)):
        front = LogMel(80)
        front.hear(tones([word])[:3200])
        loudest.append(int(front.window(0)[:, 10].argmax()))
    return np.array([np.argmin([abs(band - b) for b in loudest]) for band in range(80)])


def spot(states: int, at: int) -> np.ndarray:
    look = np.zeros(states, np.float32)
    look[at] = 1.0
    return look


class ToyVad:
    """Takes every loud sound for speech."""

    def stream(self) -> ToyVadStream:
        return ToyVadStream()


class ToyVadStream:
    def __init__(self) -> None:
        self._left = np.zeros(0, np.float32)

    def hear(self, samples: np.ndarray) -> np.ndarray:
        samples = np.concatenate([self._left, samples])
        count = len(samples) // WINDOW
        self._left = samples[count * WINDOW :]
        levels = np.abs(samples[: count * WINDOW]).reshape(count, WINDOW).max(axis=1)
        return (levels > 0.01).astype(np.float32)
