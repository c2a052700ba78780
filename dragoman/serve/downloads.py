"""What was said in a talk, as a file, while it goes on: captions or plain text.

To lay out the captions of an hour takes about a second, and a whole audience may ask for them. So
it is done on a thread, once for all who ask, and of a talk that goes on only what is new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

from dragoman.serve.protocol import Said, Talk, Told, Transcript
from dragoman.text.caption_files import captions_of
from dragoman.text.captions import CaptionMaker, Cue, TimedWord
from dragoman.text.sentences import ends_sentence
from dragoman.text.word_times import LETTERS_PER_SECOND

_PARAGRAPH = 3.0
"""Seconds between two sentences that begin a new paragraph."""


@dataclass(frozen=True, slots=True)
class File:
    """A kind of file that can be had of a talk."""

    of: Literal["translation", "source"]
    suffix: Literal[".srt", ".vtt", ".txt"]
    media_type: str


_TYPES: dict[Literal[".srt", ".vtt", ".txt"], str] = {
    ".srt": "application/x-subrip; charset=utf-8",
    ".vtt": "text/vtt; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
_TEXTS: tuple[Literal["translation", "source"], ...] = ("translation", "source")
FILES = {
    f"{of}{suffix}": File(of, suffix, kind) for of in _TEXTS for suffix, kind in _TYPES.items()
}


class Files:
    """The files of a room's last talk."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._made: dict[str, tuple[int, str]] = {}  # and up to which entry of the room's log
        self._cues: dict[tuple[int, str, str], Cues] = {}

    async def get(self, name: str, entries: int, told: Callable[[], Told]) -> str:
        """One of `FILES`, whole as far as the talk has come; empty before it has begun.

        `entries` are those of the log so far, and `told` reads them, on a thread.
        """
        async with self._lock:
            if self._made.get(name, (-1, ""))[0] != entries:
                text = await asyncio.to_thread(lambda: self._write(name, told()))
                self._made[name] = (entries, text)
            return self._made[name][1]

    def _write(self, name: str, talk: Told) -> str:
        file = FILES[name]
        begin = next((e for e in talk.events if isinstance(e, Talk)), Talk(0, None, "en"))
        if file.of == "translation":
            words = timed([e for e in talk.events if isinstance(e, Said)])
            language = begin.target
        else:
            written = [e for e in talk.events if isinstance(e, Transcript)]
            heard = next((e.language for e in reversed(written) if e.language), None)
            words, language = timed(written), heard or begin.source or "en"
        if file.suffix == ".txt":
            return _paragraphs(words)
        return captions_of(file.suffix, self._cues_of(begin.talk, file.of, language).of(words))

    def _cues_of(self, talk: int, text: str, language: str) -> Cues:
        """Those of this talk; those of talks before are not wanted again."""
        self._cues = {key: cues for key, cues in self._cues.items() if key[0] == talk}
        return self._cues.setdefault((talk, text, language), Cues(language))


class Cues:
    """The cues of a text that grows."""

    def __init__(self, language: str) -> None:
        self._maker, self._done, self._taken = CaptionMaker(language), list[Cue](), 0

    def of(self, words: Sequence[TimedWord]) -> list[Cue]:
        """The cues of these words, the first of which are those of the last time."""
        settled = max(self._taken, len(words) - 1)  # how long the last one lasts, the next tells
        for word in words[self._taken : settled]:
            self._done += self._maker.say(word)
        self._taken = settled
        rest = deepcopy(self._maker)
        last = [cue for word in words[settled:] for cue in rest.say(word)]
        return [*self._done, *last, *rest.finish()]


def timed(words: Sequence[Said | Transcript]) -> list[TimedWord]:
    """Words with when they were spoken: until the next one, unless that is long after."""
    starts = [word.source_ms / 1000 for word in words]
    nexts = [*starts[1:], float("inf")]
    return [
        TimedWord(
            word.text,
            start,
            max(start, min(after, start + len(word.text) / LETTERS_PER_SECOND)),
            joined=bool(word.text) and not word.text[0].isspace(),
        )
        for word, start, after in zip(words, starts, nexts, strict=False)
    ]


def _paragraphs(words: Sequence[TimedWord]) -> str:
    text = ""
    for number, word in enumerate(words):
        before = words[number - 1] if number else word
        pause = word.start - before.end >= _PARAGRAPH and ends_sentence(before.text)
        text += "\n\n" + word.text.lstrip() if pause else word.text
    return text.strip() + "\n" if text.strip() else ""
