"""Moonshine with a toy for its network: it hears levels, and writes a word for each."""

from dataclasses import replace

import numpy as np

from dragoman.audio.chunk import RATE
from dragoman.models.moonshine.encoder import STATE, Encoded
from dragoman.models.moonshine.model import MoonshineModel
from dragoman.models.moonshine.units import MoonshineUnits
from dragoman.models.search import Found, Past, Prompt

WORDS = 20
STOP = 3 + WORDS
NAMES = ("", "", "", *(f"▁w{index}" for index in range(WORDS)), ".", "<0xE2>", "<0x82>", "<0xAC>")
LENGTH = RATE  # samples of a word
FOREIGN, FOREIGN_SURENESS = 10, -1.5  # words of another language


def spoken(words: list[int]) -> np.ndarray:
    """A second of a steady level for every word; -1 is silence."""
    return np.repeat(np.float32([(word + 1) / 100 for word in words]), LENGTH)


class ToyEngine:
    """Hears levels: writes the words of its window in order, and a stop at the end."""

    def __init__(self) -> None:
        self.knows_languages = False  # whether it is unsure of the first words of its vocabulary
        self.windows: list[int] = []
        self.batches: list[int] = []
        self.prompts: list[Prompt] = []
        self.beams: list[int] = []
        self.pasts: list[Past | None] = []

    device = "cpu"

    def new(self):
        return Encoded()

    def encode(self, windows, sounds):
        self.batches.append(len(sounds))
        return [self._encode(window, sound) for window, sound in zip(windows, sounds, strict=True)]

    def _encode(self, window: Encoded, sound: np.ndarray) -> Encoded:
        whole = sound[: len(sound) // STATE * STATE]
        states = whole.reshape(1, 1, -1, STATE).mean(3, keepdims=True)
        if window.count:
            states = np.concatenate([window.memory["memory"], states], axis=2)
        self.windows.append(states.shape[2] * STATE)
        return replace(window, count=states.shape[2], memory={"memory": states})

    def speak(self, windows, prompts, beams, pasts=None):
        self.prompts += prompts
        self.beams += [beams] * len(prompts)
        self.pasts += pasts or [None] * len(prompts)
        states = [window.memory["memory"][0, 0, :, 0] for window in windows]
        found = [self._speak(s, p) for s, p in zip(states, prompts, strict=True)]
        if pasts is None:
            return found
        pairs = zip(found, prompts, strict=True)
        return [replace(one, past=Past((*p.known, *p.guess))) for one, p in pairs]

    def _speak(self, states: np.ndarray, prompt: Prompt) -> Found:
        words = heard(states)
        said = [token - 3 for token in prompt.said if token != STOP]
        assert said == [word for word, _ in words[: len(said)]], "what was said is not there"
        found = [(3 + word, middle) for word, middle in words[len(said) :]]
        if found:
            found.append((STOP, 0))
        looks = [np.eye(1, len(states), at, dtype=np.float32)[0] for _, at in found]
        tokens = tuple(token for token, _ in found)[: prompt.most]
        sure = tuple(FOREIGN_SURENESS if 3 <= token < 3 + FOREIGN else -0.1 for token in tokens)
        sure = sure if self.knows_languages else (-0.1,) * len(tokens)
        return Found(tokens, sure, tuple(looks), len(found) <= prompt.most, 0.0)


def heard(states: np.ndarray) -> list[tuple[int, int]]:
    """Levels that last for most of a word, with the state in the middle of each."""
    labels = np.rint(states * 100).astype(int) - 1
    found, begin = [], 0
    for index in range(1, len(labels) + 1):
        if index == len(labels) or labels[index] != labels[begin]:
            if labels[begin] >= 0 and index - begin > 0.6 * LENGTH / STATE:
                found.append((int(labels[begin]), (begin + index) // 2))
            begin = index
    return found


def toy(beams: int = 1) -> tuple[MoonshineModel, ToyEngine]:
    engine = ToyEngine()
    return MoonshineModel("toy", engine, MoonshineUnits(NAMES), beams=beams), engine
