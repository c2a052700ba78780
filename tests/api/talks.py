"""What the tests of the Python interface say and hear."""

import numpy as np

import dragoman

WORDS = [f"word{i}" for i in range(12)]
SETTINGS = {"source": "de", "model": "tests.scripted:steady", "policy": "greedy", "step_ms": 500.0}
SECONDS = 5


def text(events):
    return "".join(event.text for event in events if isinstance(event, dragoman.Said)).split()


def silence(rate=16000, seconds=SECONDS):
    return np.zeros(round(rate * seconds), np.float32)
