"""How far behind the speaker the words are, as a listener lives through it."""

from __future__ import annotations

from dragoman.interpreter import Update
from dragoman.text.words import goes_on, split_words

ANY = "zh"
"""Split as in this language, words of other scripts are whole, and letters of scripts that have no
spaces between words count for themselves."""


def lived_ms(update: Update) -> float | None:
    """How far behind the speaker its words were when they were shown, if the model knows."""
    hearing = update.hearing
    return None if update.lag_ms is None else update.lag_ms + hearing.end_ms - hearing.arrival_ms


class Lag:
    """How far behind the speaker the words are, by where the model looked when it said them.

    Where words are not set apart, every letter counts.
    """

    def __init__(self) -> None:
        self.words = 0
        self.audio_ms = 0.0
        self._compute_ms = 0.0
        self._waits_ms = 0.0  # sum over all words
        self._lags_ms = self._lived_ms = 0.0  # sums over all words with a lag
        self._timed = 0  # how many these are

    def take(self, update: Update) -> None:
        hearing, text = update.hearing, "".join(update.said)
        self.audio_ms = hearing.audio_ms
        self._compute_ms += hearing.compute_ms
        continued = bool(self.words and text and goes_on(text))  # as a late stop does
        count = len(split_words(text, ANY)) - continued
        self.words += count
        waited_ms = hearing.end_ms - hearing.arrival_ms
        self._waits_ms += count * waited_ms
        if update.lag_ms is not None:
            self._timed += count
            self._lags_ms += count * update.lag_ms
            self._lived_ms += count * (lived_ms(update) or 0.0)

    @property
    def plain_ms(self) -> float | None:
        """None where the model does not tell where it looks."""
        return self._lags_ms / self._timed if self._timed else None

    @property
    def aware_ms(self) -> float | None:
        """The same with the time for which the words' chunks waited and were worked on."""
        return self._lived_ms / self._timed if self._timed else None

    @property
    def wait_ms(self) -> float:
        """From a chunk's arrival to its words, on average."""
        return self._waits_ms / max(self.words, 1)

    @property
    def load(self) -> float:
        """Work per second of audio; below 1 keeps up."""
        return self._compute_ms / max(self.audio_ms, 1.0)
