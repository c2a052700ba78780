"""Where captions that break off are gone on with, so that no word is missing.

A file tells when a cue is shown, not when its words were spoken. The two are the same, unless the
cue before it had to stay until it could be read: behind a fast speaker cues are late, and more so
the longer nobody pauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.text.caption_layout import CaptionSettings, width
from dragoman.text.captions import Cue
from dragoman.text.plain import plain
from dragoman.text.sentences import ends_sentence
from dragoman.text.words import split_words

LEAD = 0.3
"""Seconds that are heard of the sentence before: where a word begins is known no better."""
_ROUNDING = 0.0015
"""Seconds: what is written is rounded to milliseconds."""


@dataclass(frozen=True, slots=True)
class Place:
    """A moment to go on at, and the word that was said just before it, if that is known."""

    moment: float = 0.0
    words: tuple[str, ...] = ()


def last_sentence(cues: Sequence[Cue], language: str, *, both: bool = False) -> Place:
    """Where the last sentence begins of which that can be told; `both`: a line a language."""
    for number in range(len(cues) - 1, 0, -1):
        words = split_words(" ".join(cues[number - 1].lines), language)
        if words and ends_sentence(words[-1], language=language) and not _late(cues, number, both):
            spoken = [word for word in words if plain(word)]
            return Place(max(0.0, cues[number].start - LEAD), tuple(spoken[-1:]))
    return Place()


def in_time(cues: Sequence[Cue], moment: float, *, both: bool = False) -> float:
    """The moment, or an earlier one: no cue that is shown after it was spoken before it."""
    number = sum(cue.start < moment for cue in cues)
    if not _late(cues, number, both):
        return moment
    while _late(cues, number, both):
        number -= 1
    return max(0.0, cues[number].start - LEAD) if number else 0.0


def _late(cues: Sequence[Cue], number: int, both: bool) -> bool:
    """Whether a cue may have had to wait for the one before it."""
    if not 0 < number < len(cues):
        return False
    before = cues[number - 1]
    columns = max(map(width, before.lines)) if both else width(" ".join(before.lines))
    least = CaptionSettings().seconds_to_read(columns)
    shown = before.end - before.start
    return cues[number].start - before.end < _ROUNDING and shown - least < _ROUNDING
