"""What was before this process had a talk, as its client tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dragoman.serve.protocol import Code, Elsewhere, Fault, Said, Transcript

MOST_AGAIN = 120
"""Seconds of sound that are heard again at most, for what was said of them elsewhere."""
MOST_AWAY = 600.0
"""Seconds that a talk may be nowhere."""


@dataclass(frozen=True, slots=True)
class Past:
    """Of a talk that begins here, nothing."""

    sample: int = 0  # the first that is heard here
    heard: int = 0  # all before this one had arrived there
    until: int = 0  # of the sound before this one, words were said there
    elapsed_ms: float = 0.0  # since the talk began
    word: int = 0  # the last that was said of the sound before the first sample
    transcript: int = 0
    said: tuple[Said, ...] = ()
    transcripts: tuple[Transcript, ...] = ()

    @classmethod
    def of(cls, elsewhere: Elsewhere, heard: int, elapsed_ms: float) -> Past:
        """What a client tells, who knows that all sound before the sample `heard` had arrived.

        How much time has passed is told by clocks on walls, which are set now and then, and which
        machines do not share: it is believed as far as it can be true.
        """
        _check_numbers(elsewhere.word, [said.word for said in elsewhere.said])
        _check_numbers(elsewhere.transcript, [one.number for one in elsewhere.transcripts])
        rate = max(1, elsewhere.start.audio.counted)
        most = elsewhere.keep + MOST_AGAIN * rate
        passed_ms = max([1000 * heard / rate, *(said.at_ms for said in elsewhere.said[-1:])])
        if not passed_ms <= elapsed_ms <= passed_ms + 1000 * MOST_AWAY:
            elapsed_ms = passed_ms
        return cls(
            elsewhere.keep,
            heard,
            min(max(heard, elsewhere.keep), most),
            elapsed_ms,
            elsewhere.word,
            elsewhere.transcript,
            tuple(elsewhere.said),
            tuple(elsewhere.transcripts),
        )

    @property
    def last_word(self) -> int:
        return self.said[-1].word if self.said else self.word

    @property
    def last_transcript(self) -> int:
        return self.transcripts[-1].number if self.transcripts else self.transcript

    @property
    def recalled(self) -> list[str]:
        """The words that were said of the sound from the first sample on."""
        return [said.text for said in self.said if said.word > self.word]


def _check_numbers(last: int, numbers: Sequence[int]) -> None:
    """All numbers after `last` shall be there; some before it may be."""
    if not numbers:
        return
    gaps = any(b - a != 1 for a, b in pairwise(numbers))
    if gaps or not 1 <= numbers[0] <= last + 1 or numbers[-1] < last:
        raise Fault(Code.MALFORMED, f"The words after number {last} are not all there, in order.")
