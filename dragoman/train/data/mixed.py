"""Batches of text alone among batches of speech, for a net that learns from both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dragoman.train.data.plan import Place, Plan, Planned


class Mixed(Plan):
    """The batches of a plan of speech, and so many of a plan of text that they are a share of all.

    An epoch is one of speech. The text goes on from epoch to epoch where it was left, and begins
    anew, in another order, when all of it has been read.
    """

    def __init__(self, speech: Plan, text: Plan, share: float):
        self.speech, self.text = speech, text
        self.every = len(text.epoch(0))  # batches until all text has been read
        self.count = round(len(speech.epoch(0)) * share / (1 - share))  # in an epoch of speech

    def epoch(self, number: int) -> list[Planned]:
        batches = [*self.speech.epoch(number), *self.read(number)]
        order = np.random.default_rng([self.speech.seed, number, 1]).permutation(len(batches))
        return [replace(batches[n], place=Place(number, i)) for i, n in enumerate(order)]

    def read(self, number: int) -> list[Planned]:
        """The batches of text in an epoch of speech."""
        places = np.arange(number * self.count, (number + 1) * self.count)
        rounds = {int(turn): self.text.epoch(int(turn)) for turn in set(places // self.every)}
        chosen = (rounds[int(p // self.every)][p % self.every] for p in places)
        return [replace(planned, text=True) for planned in chosen]
