"""When which words are spoken aloud, and how fast.

Nothing here knows a clock or a sound. Words come with the moment at which they were said; the
schedule gathers them into phrases and tells when the next one may begin. Words that wait for the
loudspeaker join the phrase at no cost, so phrases are long when much is said, and natural; when
nobody speaks, a phrase waits for its end, but not for long.
"""

from __future__ import annotations

from dragoman.voices.phrases import Pace, Phrase, Word, Words, best_stop, text_of


class Schedule:
    """The words that wait to be spoken aloud."""

    def __init__(self, pace: Pace | None = None, language: str = "") -> None:
        self._pace = pace or Pace()
        self._words = Words(language)
        self._ended = False

    def add(self, text: str, at: float) -> None:
        """More text, said at a moment that is not before that of the text before it."""
        words = self._words.add(text, at)
        if words:
            self._ended = False
            self._words.append(words)

    def end(self) -> None:
        """No more text comes for now: what waits need not wait for more."""
        self._ended = True

    def clear(self) -> None:
        """Forget what waits."""
        self._words.waiting.clear()

    @property
    def is_empty(self) -> bool:
        return not self._words.waiting

    def due(self, free: float) -> float | None:
        """When the next phrase may begin, if nothing is said until then; None without words.

        `free` is the end of the phrase before it.
        """
        words, pace = self._words.waiting, self._pace
        if not words:
            return None
        ready = [words[-1].at + (0.0 if self._ended else pace.pause)]
        if len(words) >= pace.few:
            ready.append(words[0].at + pace.wait)
        ready += [words[count - 1].at for count in self._ends(words)[:1]]
        return max(free, min(ready))

    def take(self, now: float, start: float) -> Phrase:
        """The next phrase, of what waits now: to its last comma if it has one.

        It will begin at `start`, which is now or, when something still plays, soon.
        """
        words = self._fitting()
        taken = self._words.take(self._count(words, now))
        at = taken[0].at
        return Phrase(text_of(taken), at, start, self._pace.speed(start - at))

    def _count(self, words: list[Word], now: float) -> int:
        """How many of some words make a phrase."""
        ends = self._ends(words)
        if ends:
            return ends[-1]
        beyond = self._words.waiting[len(words) :]
        if not beyond and (self._ended or words[-1].at + self._pace.pause <= now):
            return len(words)
        return best_stop(words, self._pace.few, beyond[0].text if beyond else "")

    def _ends(self, words: list[Word]) -> list[int]:
        """After how many words a phrase ends."""
        few = self._pace.few
        return [n for n, word in enumerate(words, 1) if n >= few and word.ends_phrase]

    def _fitting(self) -> list[Word]:
        """The words that wait, as many as a phrase may have; at least one."""
        waiting = self._words.waiting
        count = 1
        while count < len(waiting):
            if len(text_of(waiting[: count + 1])) > self._pace.longest:
                break
            count += 1
        return waiting[:count]
