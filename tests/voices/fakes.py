"""A voice and a network that hum, for tests."""

import numpy as np

from dragoman.errors import DragomanError


class ToneVoice:
    """Hums a 440 Hz tone, a fixed time per character; notes what it spoke."""

    name = "tone"
    languages = ("en",)

    def __init__(self, seconds_per_character=0.05, rate=24000, fails_from=None):
        self.seconds_per_character, self.rate, self.fails_from = (
            seconds_per_character,
            rate,
            fails_from,
        )
        self.spoken = []
        self.loaded = False

    def load(self):
        self.loaded = True

    def speak(self, text, speed=1.0):
        if self.fails_from is not None and len(self.spoken) >= self.fails_from:
            raise DragomanError("The tone voice has no breath.")
        self.spoken.append((text, speed))
        seconds = len(text) * self.seconds_per_character / speed
        time = np.arange(round(seconds * self.rate)) / self.rate
        return (0.2 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)


class FakeNetwork:
    """An inference session that hums for as many samples as a rule says; notes its inputs."""

    def __init__(self, samples):
        self.samples = samples
        self.asked = []

    def run(self, outputs, inputs):
        self.asked.append(inputs)
        return [np.sin(np.arange(self.samples(inputs)) / 10)[None].astype(np.float32)]
