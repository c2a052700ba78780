"""When the words were spoken that an interpreter says: where captions and dub belong.

An interpreter says words in bursts, and late. Where the model tells how old the sound is that the
words of a burst look at, they are laid around that moment; else they stand where they were said.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.text.caption_layout import TimedWord

LETTERS_PER_SECOND = 12.0
"""Nobody draws out words longer than at this pace: after a pause they do not reach back into it."""

WRITTEN_WITHIN = 4.0
"""Seconds after which words that were spoken are written down, where nobody knows better."""


class WordTimes:
    """The moments of one talk's words, which never go back."""

    def __init__(self) -> None:
        self._latest = 0.0

    def place(
        self, words: Sequence[str], heard_ms: float, lag_ms: float | None = None
    ) -> list[TimedWord]:
        """Words said together, with their spacing, after so much sound, so far behind it."""
        now = heard_ms / 1000
        begin = min(self._latest, now)
        middle = max(begin, now - (lag_ms or 0.0) / 1000)
        letters = max(1, sum(map(len, words)))
        half = min(middle - begin, now - middle, letters / LETTERS_PER_SECOND / 2)
        half = 0.0 if lag_ms is None else half
        timed, at = [], middle - half
        for word in words:
            end = min(now, at + 2 * half * len(word) / letters)
            joined = bool(word) and not word[0].isspace()
            timed.append(TimedWord(word, max(at, begin), max(end, begin), joined))
            at = end
        self._latest = max([self._latest, *(word.end for word in timed)])
        return timed


class TranscriptTimes:
    """The moments of the words that a speaker's transcript has."""

    def __init__(self) -> None:
        self._times = WordTimes()
        self._until_ms = 0.0  # of the sound that was written down so far

    def place(self, words: Sequence[str], heard_ms: float, lag_ms: float | None) -> list[TimedWord]:
        """Words written down together; where nobody knows how long ago they were heard, they were
        spoken since the words before them, or since the pause after those."""
        if lag_ms is None:
            spoken = sum(map(len, words)) / LETTERS_PER_SECOND
            longest = 1000 * (WRITTEN_WITHIN + spoken / 2)
            lag_ms = min((heard_ms - self._until_ms) / 2, longest)
        if words:
            self._until_ms = heard_ms
        return self._times.place(words, heard_ms, lag_ms)
