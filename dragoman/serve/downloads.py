"""What was said in a talk, as a file, while it goes on: captions or plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.serve.protocol import Said, Talk, Told, Transcript
from dragoman.text.caption_files import captions_text
from dragoman.text.caption_layout import TimedWord
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


def file_of(name: str, talk: Told) -> str:
    """One of `FILES`, whole as far as the talk has come; empty before it has begun."""
    file = FILES[name]
    said = [e for e in talk.events if isinstance(e, Said)]
    written = [e for e in talk.events if isinstance(e, Transcript)]
    begin = next((e for e in talk.events if isinstance(e, Talk)), None)
    if file.of == "translation":
        words, language = timed(said), begin.target if begin else "en"
    else:
        heard = next((e.language for e in reversed(written) if e.language), None)
        words, language = timed(written), (begin and begin.source) or heard or "en"
    if file.suffix == ".txt":
        return _paragraphs(words)
    return captions_text(file.suffix, words, language)


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
