"""Where the sentences of a speech lie in its sound, though nobody wrote that down.

A translation that was edited for print has no times, but the English text beside it follows the
speech word by word. So: both texts are cut into sentences, which are paired by their lengths within
each paragraph (Gale and Church); the English words are laid beside words whose moments are known,
with the fewest edits; a pair of sentences begins and ends midway between its words and its
neighbours'. Nothing of this knows what the system under test has said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein

from dragoman.audio.source import open_audio
from dragoman.metrics.segments import Segment
from dragoman.models import Draft, Model, Stream
from dragoman.setup import Setup, System
from dragoman.text.sentences import split_sentences

EARS = Setup(
    model="moonshine-base",
    source="en",
    target="en",
    policy="agreeatt:old=1500,alone=2200,sure=0.8",
    step_ms=2000.0,
    beams=1,
    threads=1,
)

BEADS = {(1, 1): 0.0, (1, 2): 2.0, (2, 1): 2.0, (2, 2): 4.0, (1, 3): 5.0, (3, 1): 5.0}
SPREAD = 6.8  # variance of letters for each letter of the other text, as Gale and Church found
KNOWN = 0.5  # of a sentence's words that must be found, or it counts with the one before it
MARGIN_MS = 300.0  # of a word beyond the moment that is known of it


@dataclass(frozen=True, slots=True)
class Spoken:
    """A word that was heard."""

    text: str
    ms: float


class Noting:
    """A recogniser, and the moments of the words that became final."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.words: list[Spoken] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        self.words += _spoken(draft, tokens)
        self._model.commit(stream, draft, tokens, closed)


def _spoken(draft: Draft, tokens: int) -> Iterator[Spoken]:
    count = draft.words_within(tokens)
    for word, begin, end in zip(draft.words[:count], (0, *draft.ends), draft.ends, strict=False):
        looks = draft.looks(begin, end)
        if looks:
            yield Spoken(word, (min(looks) + max(looks)) / 2)


def spoken(system: System, audio: Path) -> list[Spoken]:
    """The words that a recogniser hears in a recording."""
    interpreter = system.interpreter()
    interpreter.model = noting = Noting(interpreter.model)
    for chunk in open_audio(audio, step_ms=system.setup.step_ms):
        interpreter.hear(chunk)
    return noting.words


def segments_of(
    index: int, wav: str, paragraphs: Sequence[tuple[str, str]], heard: Sequence[Spoken]
) -> list[Segment]:
    """The sentences of a speech with their references.

    `paragraphs` are pairs of English and reference, in the order of speaking; `index` is the first
    segment's. Where nothing can be placed, the speech is one segment.
    """
    pairs = [pair for english, other in paragraphs for pair in paired(english, other)]
    words = [_plain(english) for english, _ in pairs]
    moments = _moments([word for own in words for word in own], heard)
    groups = _placed(words, moments)
    begins = [0, *accumulate(sum(len(words[at]) for at in group) for group in groups)]
    cuts = [_midway(moments, begin, heard) for begin in begins]
    return [
        Segment(index + at, wav, start / 1000, (end - start) / 1000, _joined(pairs, group))
        for at, (group, (start, end)) in enumerate(zip(groups, pairwise(cuts), strict=True))
    ]


def paired(english: str, other: str) -> list[tuple[str, str]]:
    """The sentences of a paragraph and of its translation, beside each other."""
    ours, theirs = _sentences(english), _sentences(other)
    if not ours or not theirs:
        return [(english, other)]
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    for i in range(len(ours) + 1):
        for j in range(len(theirs) + 1):
            for (a, b), price in BEADS.items():
                before, _ = best.get((i - a, j - b), (inf, None))
                costs = before + price + _misfit(ours[i - a : i], theirs[j - b : j])
                if before < inf and costs < best.get((i, j), (inf, None))[0]:
                    best[i, j] = costs, (a, b)
    at = (len(ours), len(theirs))
    if at not in best:  # one text has more than three sentences for each of the other
        return [(english, other)]
    found = []
    while at != (0, 0):
        a, b = best[at][1]
        found.append((" ".join(ours[at[0] - a : at[0]]), " ".join(theirs[at[1] - b : at[1]])))
        at = (at[0] - a, at[1] - b)
    return found[::-1]


def _misfit(ours: Sequence[str], theirs: Sequence[str]) -> float:
    a, b = sum(map(len, ours)), sum(map(len, theirs))
    return (a - b) ** 2 / (SPREAD * max(1, a + b))


def _sentences(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[a:b]) for a, b in pairwise((0, *split_sentences(words)))]


def _plain(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower().replace("’", "'"))


def _moments(words: Sequence[str], heard: Sequence[Spoken]) -> list[float | None]:
    """When each word was heard; None where something else was, or nothing."""
    known = [(word, one.ms) for one in heard for word in _plain(one.text)]
    moments: list[float | None] = [None] * len(words)
    for edit in Levenshtein.opcodes(words, [word for word, _ in known]):
        if edit.tag == "equal":
            size = edit.src_end - edit.src_start
            for at in range(size):
                moments[edit.src_start + at] = known[edit.dest_start + at][1]
    return moments


def _placed(words: Sequence[Sequence[str]], moments: Sequence[float | None]) -> list[list[int]]:
    """Sentences that belong together: one that was not spoken as it is written has no place of its
    own."""
    groups: list[list[int]] = []
    begins = [0, *accumulate(map(len, words))]

    def known(at: int) -> bool:
        places = moments[begins[at] : begins[at + 1]]
        return sum(one is not None for one in places) >= max(1.0, KNOWN * len(places))

    for at in range(len(words)):
        if groups and not (known(at) and any(map(known, groups[-1]))):
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups


def _midway(moments: Sequence[float | None], at: int, heard: Sequence[Spoken]) -> float:
    before = next((one for one in reversed(moments[:at]) if one is not None), None)
    after = next((one for one in moments[at:] if one is not None), None)
    if before is not None and after is not None:
        return (before + after) / 2
    if after is not None:
        return max(0.0, after - MARGIN_MS)
    return (before if before is not None else max((w.ms for w in heard), default=0.0)) + MARGIN_MS


def _joined(pairs: Sequence[tuple[str, str]], group: Sequence[int]) -> str:
    return " ".join(pairs[at][1] for at in group)
